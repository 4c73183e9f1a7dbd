-- The engine's tables. Times are integers: milliseconds since 1970 by the
-- store's clock, 0 for none. Durations are milliseconds.

-- The clock's high-water mark: no time read under the write lock is earlier.
-- turns counts committed writes, by which a process notices another one.
CREATE TABLE clock (
    id    INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    mark  INTEGER NOT NULL,
    turns INTEGER NOT NULL
) STRICT;
INSERT INTO clock (id, mark, turns) VALUES (1, 0, 0);

-- One narrow row a task: everything that claims, guards and budgets look at.
CREATE TABLE tasks (
    id            TEXT    NOT NULL PRIMARY KEY,
    kind          TEXT    NOT NULL,
    scope         TEXT    NOT NULL,
    status        TEXT    NOT NULL CHECK (status IN ('queued', 'running', 'completed', 'failed', 'cancelled')),
    reason        TEXT    NOT NULL DEFAULT '',
    error_code    TEXT    NOT NULL DEFAULT '',
    error_message TEXT    NOT NULL DEFAULT '',
    version       INTEGER NOT NULL DEFAULT 0,
    attempt       TEXT    NOT NULL DEFAULT '',
    worker        TEXT    NOT NULL DEFAULT '',
    lease_until   INTEGER NOT NULL DEFAULT 0,
    run_at        INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    ended_at      INTEGER NOT NULL DEFAULT 0,
    attempts_used INTEGER NOT NULL DEFAULT 0,
    attempts_max  INTEGER NOT NULL,
    calls_used    INTEGER NOT NULL DEFAULT 0,
    calls_max     INTEGER NOT NULL,
    open_call     INTEGER NOT NULL DEFAULT 0,
    elapsed_max   INTEGER NOT NULL,
    elapsed_from  INTEGER NOT NULL,
    deadline      INTEGER NOT NULL DEFAULT 0,
    on_unknown    TEXT    NOT NULL,
    acceptance    TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_due ON tasks (kind, run_at) WHERE status = 'queued';
CREATE INDEX tasks_leased ON tasks (kind, lease_until) WHERE status = 'running';
CREATE INDEX tasks_ended ON tasks (ended_at, status) WHERE ended_at > 0;

-- A key and what it is bound to (P1). task_id is empty for a keyed request
-- without a task, which keeps its answer instead.
CREATE TABLE submissions (
    scope       TEXT    NOT NULL,
    action      TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    fingerprint BLOB    NOT NULL,
    task_id     TEXT    NOT NULL,
    answer      TEXT,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (scope, action, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX submissions_expiry ON submissions (expires_at);

-- What a task was given: read by claims and hooks, never changed. action and
-- key lead back to the submission's record.
CREATE TABLE inputs (
    task_id TEXT NOT NULL PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
    action  TEXT NOT NULL,
    key     TEXT NOT NULL,
    input   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The response slot: one row a task at most (P3).
CREATE TABLE responses (
    task_id     TEXT    NOT NULL PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
    version     INTEGER NOT NULL,
    attempt     TEXT    NOT NULL,
    response    TEXT    NOT NULL,
    accepted_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER responses_are_immutable BEFORE UPDATE ON responses
BEGIN
    SELECT RAISE(ABORT, 'a response is immutable');
END;

-- One row a claim that added an attempt.
CREATE TABLE attempts (
    task_id       TEXT    NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    version       INTEGER NOT NULL,
    attempt       TEXT    NOT NULL,
    worker        TEXT    NOT NULL,
    started_at    INTEGER NOT NULL,
    ended_at      INTEGER NOT NULL DEFAULT 0,
    outcome       TEXT    NOT NULL DEFAULT '',
    error_code    TEXT    NOT NULL DEFAULT '',
    error_message TEXT    NOT NULL DEFAULT '',
    renewals      INTEGER NOT NULL DEFAULT 0,
    renewed_first INTEGER NOT NULL DEFAULT 0,
    renewed_last  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (task_id, version)
) STRICT, WITHOUT ROWID;

-- One row a counted call, written before the call is sent (P8).
CREATE TABLE calls (
    task_id         TEXT    NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    number          INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    attempt         TEXT    NOT NULL,
    counted_at      INTEGER NOT NULL,
    closed_at       INTEGER NOT NULL DEFAULT 0,
    class           TEXT    NOT NULL DEFAULT '',
    code            TEXT    NOT NULL DEFAULT '',
    requests        INTEGER NOT NULL DEFAULT 0,
    input_tokens    INTEGER NOT NULL DEFAULT 0,
    output_tokens   INTEGER NOT NULL DEFAULT 0,
    operation       TEXT    NOT NULL DEFAULT '',
    checkpointed_at INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (task_id, number)
) STRICT, WITHOUT ROWID;

-- What an attempt left for whoever takes over.
CREATE TABLE progress (
    task_id     TEXT    NOT NULL PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
    version     INTEGER NOT NULL,
    state       BLOB    NOT NULL,
    recorded_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The live text of a running attempt; gone once the task has ended.
CREATE TABLE drafts (
    task_id TEXT    NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    text    TEXT    NOT NULL,
    PRIMARY KEY (task_id, version, seq)
) STRICT, WITHOUT ROWID;

-- The steps that leave no column elsewhere, one counted row for those that
-- repeat, so that no storm of them can grow the table.
CREATE TABLE events (
    task_id       TEXT    NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    type          TEXT    NOT NULL,
    version       INTEGER NOT NULL,
    attempt       TEXT    NOT NULL,
    why           TEXT    NOT NULL,
    first_at      INTEGER NOT NULL,
    last_at       INTEGER NOT NULL,
    count         INTEGER NOT NULL,
    worker        TEXT    NOT NULL DEFAULT '',
    code          TEXT    NOT NULL DEFAULT '',
    detail        TEXT    NOT NULL DEFAULT '',
    input_tokens  INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (task_id, type, version, attempt, why)
) STRICT, WITHOUT ROWID;

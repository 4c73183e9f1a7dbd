-- The engine's tables. Every time is the server's own clock_timestamp().
-- "onereply." stands for the schema that the store was opened with.

-- One narrow row a task: everything that claims, guards and budgets look at.
-- The fill factor leaves room for renewals and counts in the row's own page.
CREATE TABLE onereply.tasks (
    id            text        COLLATE "C" NOT NULL PRIMARY KEY,
    kind          text        COLLATE "C" NOT NULL,
    scope         text        COLLATE "C" NOT NULL,
    status        text        COLLATE "C" NOT NULL CHECK (status IN ('queued', 'running', 'completed', 'failed', 'cancelled')),
    reason        text        NOT NULL DEFAULT '',
    error_code    text        NOT NULL DEFAULT '',
    error_message text        NOT NULL DEFAULT '',
    version       bigint      NOT NULL DEFAULT 0,
    attempt       text        COLLATE "C" NOT NULL DEFAULT '',
    worker        text        NOT NULL DEFAULT '',
    lease_until   timestamptz,
    run_at        timestamptz NOT NULL,
    created_at    timestamptz NOT NULL,
    ended_at      timestamptz,
    attempts_used integer     NOT NULL DEFAULT 0,
    attempts_max  integer     NOT NULL,
    calls_used    integer     NOT NULL DEFAULT 0,
    calls_max     integer     NOT NULL,
    open_call     integer     NOT NULL DEFAULT 0,
    elapsed_max   interval    NOT NULL,
    elapsed_from  timestamptz NOT NULL,
    deadline      timestamptz,
    on_unknown    text        NOT NULL,
    acceptance    text        NOT NULL,
    CONSTRAINT running_has_a_lease CHECK (status <> 'running' OR lease_until IS NOT NULL)
) WITH (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05
);
-- What a claim looks for, and the next moment there is something to claim. A
-- renewal moves its entry of tasks_leased, once a third of a lease; without the
-- lease in it every look for work would read every running task.
CREATE INDEX tasks_due ON onereply.tasks (kind, run_at) WHERE status = 'queued';
CREATE INDEX tasks_leased ON onereply.tasks (kind, lease_until) WHERE status = 'running';
CREATE INDEX tasks_ended ON onereply.tasks (ended_at, status) WHERE ended_at IS NOT NULL;

-- A key and what it is bound to (P1). task_id is empty for a keyed request
-- without a task, which keeps its answer instead.
CREATE TABLE onereply.submissions (
    scope       text        COLLATE "C" NOT NULL,
    action      text        COLLATE "C" NOT NULL,
    key         text        COLLATE "C" NOT NULL,
    fingerprint bytea       NOT NULL,
    task_id     text        COLLATE "C" NOT NULL,
    answer      text,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (scope, action, key)
);
CREATE INDEX submissions_expiry ON onereply.submissions (expires_at);

-- What a task was given: read by claims and hooks, never changed. action and
-- key lead back to the submission's record.
CREATE TABLE onereply.inputs (
    task_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES onereply.tasks (id) ON DELETE CASCADE,
    action  text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    input   text NOT NULL
);

-- The response slot: one row a task at most (P3).
CREATE TABLE onereply.responses (
    task_id     text        COLLATE "C" NOT NULL PRIMARY KEY REFERENCES onereply.tasks (id) ON DELETE CASCADE,
    version     bigint      NOT NULL,
    attempt     text        COLLATE "C" NOT NULL,
    response    text        NOT NULL,
    accepted_at timestamptz NOT NULL
);
CREATE FUNCTION onereply.a_response_is_immutable() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'a response is immutable'; END $$;
CREATE TRIGGER responses_are_immutable BEFORE UPDATE ON onereply.responses
    FOR EACH ROW EXECUTE FUNCTION onereply.a_response_is_immutable();

-- One row a claim that added an attempt.
CREATE TABLE onereply.attempts (
    task_id       text        COLLATE "C" NOT NULL REFERENCES onereply.tasks (id) ON DELETE CASCADE,
    version       bigint      NOT NULL,
    attempt       text        COLLATE "C" NOT NULL,
    worker        text        NOT NULL,
    started_at    timestamptz NOT NULL,
    ended_at      timestamptz,
    outcome       text        NOT NULL DEFAULT '',
    error_code    text        NOT NULL DEFAULT '',
    error_message text        NOT NULL DEFAULT '',
    renewals      integer     NOT NULL DEFAULT 0,
    renewed_first timestamptz,
    renewed_last  timestamptz,
    PRIMARY KEY (task_id, version)
) WITH (fillfactor = 80);

-- One row a counted call, written before the call is sent (P8).
CREATE TABLE onereply.calls (
    task_id         text        COLLATE "C" NOT NULL REFERENCES onereply.tasks (id) ON DELETE CASCADE,
    number          integer     NOT NULL,
    version         bigint      NOT NULL,
    attempt         text        COLLATE "C" NOT NULL,
    counted_at      timestamptz NOT NULL,
    closed_at       timestamptz,
    class           text        NOT NULL DEFAULT '',
    code            text        NOT NULL DEFAULT '',
    requests        integer     NOT NULL DEFAULT 0,
    input_tokens    bigint      NOT NULL DEFAULT 0,
    output_tokens   bigint      NOT NULL DEFAULT 0,
    operation       text        NOT NULL DEFAULT '',
    checkpointed_at timestamptz,
    PRIMARY KEY (task_id, number)
) WITH (fillfactor = 80);

-- What an attempt left for whoever takes over.
CREATE TABLE onereply.progress (
    task_id     text        COLLATE "C" NOT NULL PRIMARY KEY REFERENCES onereply.tasks (id) ON DELETE CASCADE,
    version     bigint      NOT NULL,
    state       bytea       NOT NULL,
    recorded_at timestamptz NOT NULL
);

-- The live text of a running attempt; gone once the task has ended.
CREATE TABLE onereply.drafts (
    task_id text   COLLATE "C" NOT NULL REFERENCES onereply.tasks (id) ON DELETE CASCADE,
    version bigint NOT NULL,
    seq     bigint NOT NULL,
    text    text   NOT NULL,
    PRIMARY KEY (task_id, version, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- The steps that leave no column elsewhere, one counted row for those that
-- repeat, so that no storm of them can grow the table.
CREATE TABLE onereply.events (
    task_id       text        COLLATE "C" NOT NULL REFERENCES onereply.tasks (id) ON DELETE CASCADE,
    type          text        NOT NULL,
    version       bigint      NOT NULL,
    attempt       text        COLLATE "C" NOT NULL,
    why           text        NOT NULL,
    first_at      timestamptz NOT NULL,
    last_at       timestamptz NOT NULL,
    count         integer     NOT NULL,
    worker        text        NOT NULL DEFAULT '',
    code          text        NOT NULL DEFAULT '',
    detail        text        NOT NULL DEFAULT '',
    input_tokens  bigint      NOT NULL DEFAULT 0,
    output_tokens bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (task_id, type, version, attempt, why)
);

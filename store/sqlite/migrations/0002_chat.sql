-- The chat's tables. Times are integers: milliseconds since 1970 by the store's
-- clock. Tasks are named, not referred to: they may be purged before a
-- conversation is deleted.

-- last_position counts the places given out in the conversation.
CREATE TABLE conversations (
    id            TEXT    NOT NULL PRIMARY KEY,
    scope         TEXT    NOT NULL,
    title         TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    last_position INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX conversations_page ON conversations (scope, id);

-- documents is a JSON array, empty text for none. task_id is the task that a
-- question was sent with, and the one that produced an answer.
CREATE TABLE messages (
    id              TEXT    NOT NULL PRIMARY KEY,
    conversation_id TEXT    NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    position        INTEGER NOT NULL,
    role            TEXT    NOT NULL CHECK (role IN ('user', 'assistant')),
    text            TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    documents       TEXT    NOT NULL,
    task_id         TEXT    NOT NULL,
    reply_to        TEXT,
    UNIQUE (conversation_id, position)
) STRICT;
-- One answer a task, should ever a hook run twice.
CREATE UNIQUE INDEX messages_task ON messages (task_id, role);
CREATE INDEX messages_answers ON messages (reply_to, position) WHERE reply_to IS NOT NULL;

-- The later tasks of a question.
CREATE TABLE regenerations (
    task_id    TEXT    NOT NULL PRIMARY KEY,
    message_id TEXT    NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    position   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX regenerations_newest ON regenerations (message_id, position);

-- The chat's tables. Times are integers: milliseconds since 1970 by the server's
-- clock. Tasks are named, not referred to: they may be purged before a
-- conversation is deleted.

-- last_position counts the places given out in the conversation.
CREATE TABLE onereply.conversations (
    id            text   COLLATE "C" NOT NULL PRIMARY KEY,
    scope         text   COLLATE "C" NOT NULL,
    title         text   NOT NULL,
    created_at    bigint NOT NULL,
    last_position bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 80);
CREATE INDEX conversations_page ON onereply.conversations (scope, id);

-- documents is a JSON array, empty text for none. task_id is the task that a
-- question was sent with, and the one that produced an answer.
CREATE TABLE onereply.messages (
    id              text   COLLATE "C" NOT NULL PRIMARY KEY,
    conversation_id text   COLLATE "C" NOT NULL REFERENCES onereply.conversations (id) ON DELETE CASCADE,
    position        bigint NOT NULL,
    role            text   NOT NULL CHECK (role IN ('user', 'assistant')),
    text            text   NOT NULL,
    created_at      bigint NOT NULL,
    documents       text   NOT NULL,
    task_id         text   COLLATE "C" NOT NULL,
    reply_to        text   COLLATE "C",
    UNIQUE (conversation_id, position)
);
-- One answer a task, should ever a hook run twice.
CREATE UNIQUE INDEX messages_task ON onereply.messages (task_id, role);
CREATE INDEX messages_answers ON onereply.messages (reply_to, position) WHERE reply_to IS NOT NULL;

-- The later tasks of a question.
CREATE TABLE onereply.regenerations (
    task_id    text   COLLATE "C" NOT NULL PRIMARY KEY,
    message_id text   COLLATE "C" NOT NULL REFERENCES onereply.messages (id) ON DELETE CASCADE,
    position   bigint NOT NULL
);
CREATE INDEX regenerations_newest ON onereply.regenerations (message_id, position);

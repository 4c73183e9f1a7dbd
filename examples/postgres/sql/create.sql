-- The application's own tables: they were there before the engine came.
CREATE TABLE IF NOT EXISTS public.tickets (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, press text NOT NULL UNIQUE, question text NOT NULL, task text, answer text)

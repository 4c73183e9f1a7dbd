-- P2: the task; queued, it is its own handoff.
INSERT INTO tasks (id, kind, scope, status, run_at, created_at, attempts_max, calls_max,
    elapsed_max, elapsed_from, deadline, on_unknown, acceptance)
VALUES (:task, :kind, :scope, 'queued', :run_at, :now, :attempts, :calls, :elapsed, :now, :deadline, :on_unknown, :acceptance)

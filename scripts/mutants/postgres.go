package main

import "slices"

const postgresStatements = "store/postgres/sql/"

// postgresTests run the suite that every store passes, and the traps that need
// two connections, on a private PostgreSQL server.
var postgresTests = []string{"./store/postgres"}

// onPostgres names the cases that must notice, so that each takes seconds.
func onPostgres(name, promise, cases string, edits ...edit) mutation {
	for i := range edits {
		edits[i].file = postgresStatements + edits[i].file
	}
	return mutation{name: "postgres " + name, promise: promise, edits: edits, packages: postgresTests,
		run: "^(TestStatusAndSlotGuardOnTheirOwn|TestStoreConformance)$/^pgx$/^(" + cases + ")"}
}

// withoutPostgres leaves out what a machine without the server cannot show.
func withoutPostgres(all []mutation) []mutation {
	return slices.DeleteFunc(slices.Clone(all), func(m mutation) bool { return slices.Equal(m.packages, postgresTests) })
}

// postgresMutations are the guards of the set-based statements.
func postgresMutations() []mutation {
	return slices.Concat(postgresSubmitMutations(), postgresClaimMutations(), postgresGuardMutations(), postgresEndMutations())
}

// taskNotEnded keeps a key whose task is still at work.
const taskNotEnded = "\n      AND coalesce((SELECT t.status FROM onereply.tasks t WHERE t.id = s.task_id), 'gone') NOT IN ('queued', 'running')"

func postgresSubmitMutations() []mutation {
	return []mutation{
		onPostgres("submit: key not yet expired", "P1", "key", edit{"submit.sql", "WHERE s.expires_at <= clock_timestamp()\n", "WHERE true\n"},
			edit{"submit_one.sql", "WHERE s.expires_at <= clock_timestamp()\n", "WHERE true\n"}),
		onPostgres("submit: task of the key not ended", "P1", "key", edit{"submit.sql", taskNotEnded, ""}, edit{"submit_one.sql", taskNotEnded, ""}),
		onPostgres("purge: key not yet expired", "P1", "purge",
			edit{"purge_keys.sql", "WHERE s.expires_at <= statement_timestamp()", "WHERE true"},
			edit{"purge_keys.sql", " AND s.expires_at <= clock_timestamp()", ""}),
		onPostgres("purge: task of the key not ended", "P1", "key", edit{"purge_keys.sql",
			"\n      AND NOT EXISTS (SELECT 1 FROM onereply.tasks t WHERE t.id = s.task_id AND t.status IN ('queued', 'running'))", ""}),
		onPostgres("purge: task still named by its key", "P1", "purge", edit{"purge_tasks.sql", "AND s.task_id = t.id", "AND s.task_id = t.id AND false"}),
	}
}

func postgresClaimMutations() []mutation {
	var all []mutation
	for _, file := range []string{"claim", "claim_ids"} {
		queued := edit{file + ".sql", "t.run_at <= statement_timestamp()", "true"}
		running := edit{file + ".sql", "t.lease_until <= statement_timestamp()", "true"}
		all = append(all,
			onPostgres(file+": version rises", "P5", "claim|submit with a delay", edit{file + ".sql", "version = t.version + 1", "version = greatest(t.version, 1)"}),
			onPostgres(file+": queued task not yet due", "P5", "claim|submit with a delay", queued, edit{file + ".sql", " AND n.run_at <= n.now", ""}),
			onPostgres(file+": running task's lease not over", "P5", "claim|submit with a delay", running, edit{file + ".sql", " AND n.lease_until <= n.now", ""}),
			onPostgres(file+": lease over at its very instant", "P5", "claim|submit with a delay", edit{file + ".sql", "n.lease_until <= n.now", "n.lease_until < n.now"}),
			onPostgres(file+": a spent task gets no attempt", "P8", "budget", edit{file + ".sql", "CASE WHEN p.spent THEN 0 ELSE 1 END", "1"}),
			onPostgres(file+": never past the deadline", "P8", "budget", edit{file + ".sql", "least(p.now + $3::interval, t.deadline, ", "least(p.now + $3::interval, "}),
		)
	}
	return all
}

// postgresGuardMutations take each of the four conditions out of each statement
// that can come late.
func postgresGuardMutations() []mutation {
	var all []mutation
	for _, file := range []string{"accept", "fail", "retry", "release", "renew", "count", "close", "checkpoint", "draft", "progress"} {
		for _, guard := range []struct{ name, before string }{
			{"version", "g.version = g.for_version AND "},
			{"attempt", " AND g.attempt = g.for_attempt"},
			{"status", "AND g.status = 'running' "},
			{"lease", " AND g.lease_until > g.now"},
		} {
			all = append(all, onPostgres(file+": "+guard.name, "P5", "guard", edit{file + ".sql", guard.before, map[bool]string{true: "\n      ", false: ""}[guard.name == "attempt"]}))
		}
		all = append(all, onPostgres(file+": lease over at its very instant", "P5", "guard", edit{file + ".sql", "g.lease_until > g.now", "g.lease_until >= g.now"}))
	}
	return all
}

func postgresEndMutations() []mutation {
	return []mutation{
		onPostgres("first-valid: task has not ended", "P3", "accept|guard",
			edit{"accept_first_valid.sql", "g.status IN ('queued', 'running')", "true"}),
		onPostgres("first-valid: kind says so", "P5", "accept|guard", edit{"accept_first_valid.sql", " AND g.acceptance = 'first-valid'", ""}),
		onPostgres("first-valid: deadline", "P8", "accept|guard", edit{"accept_first_valid.sql", "\n      AND (g.deadline IS NULL OR g.deadline > g.now)", ""}),
		onPostgres("first-valid: recorded attempt", "P5", "accept|guard", edit{"accept_first_valid.sql", " AND a.version = g.for_version AND a.attempt = g.for_attempt", " AND a.version = g.for_version"}),
		onPostgres("count: budget of calls", "P8", "call", edit{"count.sql", " AND t.calls_used < t.calls_max", ""}),
		onPostgres("close: the first word stays", "P8", "call", edit{"close.sql", " AND num_nonnulls(c.closed_at) <> 1", ""}),
		onPostgres("renew: never past the deadline", "P8", "budget", edit{"renew.sql", "CASE WHEN t.deadline > g.now THEN t.deadline END,\n", "\n"}),
		onPostgres("cancel: only what has not ended", "P3", "cancel", edit{"cancel.sql", " AND c.status IN ('queued', 'running')", ""}),
		onPostgres("resume: nothing used is given back", "P8", "resume|call", edit{"resume.sql", "calls_max = t.calls_max + $3", "calls_max = t.calls_max + $3, calls_used = 0"}),
		onPostgres("resume: the key is kept as long", "P1", "resume", edit{"resume.sql", "greatest(s.expires_at, d.now + $5::interval)", "least(s.expires_at, d.now + $5::interval)"}),
		onPostgres("takeover: an outcome stays", "P5", "guard|timeline|accept", edit{"refused.sql", " AND num_nulls(nullif(a.outcome, '')) <> 0", ""}),
	}
}

package main

import (
	"fmt"
	"strings"
)

// mutation is one guard taken out: the edits that do it, the promise that then
// falls, and the packages whose tests must notice.
type mutation struct {
	name     string
	promise  string
	edits    []edit
	packages []string
	run      string // only these of their tests, where all would take long; empty: all
}

// edit replaces a text that occurs exactly once in a file.
type edit struct {
	file          string // from the module's root
	before, after string
}

// apply makes the edit, or says that the list no longer fits the source.
func (e edit) apply(text string) (string, error) {
	if n := strings.Count(text, e.before); n != 1 {
		return "", fmt.Errorf("%s holds %q %d times, want once; bring scripts/mutants/mutations.go up to date", e.file, e.before, n)
	}
	return strings.Replace(text, e.before, e.after, 1), nil
}

// mutations lists every guard, in the order in which a task meets them.
func mutations() []mutation {
	var all []mutation
	for _, group := range [][]mutation{submitMutations(), claimMutations(), guardMutations(), endMutations(), keeperMutations(), postgresMutations(), engineMutations(), transportMutations()} {
		all = append(all, group...)
	}
	return all
}

const statements = "store/sqlite/sql/"

// storeTests run the suite that every store passes, on SQLite.
var storeTests = []string{"./store/sqlite"}

func one(name, promise, file, before, after string) mutation {
	return mutation{name: name, promise: promise, edits: []edit{{statements + file, before, after}}, packages: storeTests}
}

func submitMutations() []mutation {
	return []mutation{
		one("submit: key not yet expired", "P1", "submit_key.sql", "WHERE submissions.expires_at <= excluded.created_at\n", "WHERE 1 = 1\n"),
		one("submit: task of the key not ended", "P1", "submit_key.sql",
			"\n  AND NOT EXISTS (SELECT 1 FROM tasks WHERE id = submissions.task_id AND status IN ('queued', 'running'))", ""),
	}
}

func claimMutations() []mutation {
	return []mutation{
		one("claim: version rises", "P5", "claim.sql", "version = version + 1", "version = max(version, 1)"),
		one("claim: queued task not yet due", "P5", "claim.sql", "status = 'queued' AND run_at <= :now", "status = 'queued'"),
		one("claim: running task's lease not over", "P5", "claim.sql", "status = 'running' AND lease_until <= :now", "status = 'running'"),
		one("claim: lease over at its very instant", "P5", "claim.sql", "lease_until <= :now", "lease_until < :now"),
		one("claim: only what has not ended", "P3", "claim.sql", "((status = 'queued' AND run_at <= :now)", "((status <> 'running' AND run_at <= :now)"),
	}
}

// guardMutations takes each of the four conditions out of each statement that
// can come late.
func guardMutations() []mutation {
	var all []mutation
	for _, file := range []string{"guard", "accept", "fail", "retry", "release", "renew", "count", "checkpoint", "draft", "progress"} {
		for _, guard := range []struct{ name, before string }{
			{"version", " AND version = :version"},
			{"attempt", " AND attempt = :attempt"},
			{"status", " AND status = 'running'"},
			{"lease", " AND lease_until > :now"},
		} {
			all = append(all, one(file+": "+guard.name, "P5", file+".sql", guard.before, ""))
		}
		all = append(all, one(file+": lease over at its very instant", "P5", file+".sql", "lease_until > :now", "lease_until >= :now"))
	}
	return all
}

func endMutations() []mutation {
	return []mutation{
		one("accept: slot is empty", "P3", "accept.sql", "\n  AND NOT EXISTS (SELECT 1 FROM responses WHERE task_id = tasks.id)", ""),
		one("first-valid: task has not ended", "P3", "accept_first_valid.sql", "status IN ('queued', 'running')", "1 = 1"),
		one("first-valid: kind says so", "P5", "accept_first_valid.sql", " AND acceptance = 'first-valid'", ""),
		one("first-valid: deadline", "P8", "accept_first_valid.sql", " AND (deadline = 0 OR deadline > :now)", ""),
		one("first-valid: recorded attempt", "P5", "accept_first_valid.sql",
			"\n  AND EXISTS (SELECT 1 FROM attempts WHERE task_id = tasks.id AND version = :version AND attempt = :attempt)", ""),
		one("first-valid: slot is empty", "P3", "accept_first_valid.sql", "\n  AND NOT EXISTS (SELECT 1 FROM responses WHERE task_id = tasks.id)", ""),
		one("count: budget of calls", "P8", "count.sql", "\n  AND calls_used < calls_max", ""),
		one("close_call: the first word stays", "P8", "close_call.sql", " AND closed_at = 0", ""),
		one("renew: never past the deadline", "P8", "renew.sql", "CASE WHEN deadline > :now THEN deadline ELSE :now + :lease END", ":now + :lease"),
		one("cancel: only what has not ended", "P3", "cancel.sql", " AND status IN ('queued', 'running')", ""),
		{"resume: only what has failed", "P3", []edit{ // each of the two implies the other
			{statements + "resume.sql", " AND status = 'failed'", ""},
			{"store/sqlite/command.go", "before.Status != onereply.StatusFailed", "false"},
		}, storeTests, ""},
		one("resume: nothing used is given back", "P8", "resume.sql", "calls_max = calls_max + :calls", "calls_max = calls_max + :calls, calls_used = 0"),
		one("resume: the key is kept as long", "P1", "resume_key.sql", "expires_at = max(expires_at, :expires)", "expires_at = expires_at"),
		one("takeover: an outcome stays", "P5", "claim_close.sql", " AND outcome = ''", ""),
	}
}

func keeperMutations() []mutation {
	return []mutation{
		one("purge: key not yet expired", "P1", "purge_keys.sql", "s.expires_at <= :now", "1 = 1"),
		one("purge: task of the key not ended", "P1", "purge_keys.sql",
			"\n      AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = s.task_id AND t.status IN ('queued', 'running'))", ""),
		one("purge: task not past its retention", "P1", "purge_tasks.sql", " AND t.ended_at <= :before", ""),
		one("purge: task has ended", "P15", "purge_tasks.sql", "t.ended_at > 0 AND ", ""),
	}
}

// engineMutations take the guards out that no statement can hold.
func engineMutations() []mutation {
	in := func(name, promise, file, before, after string) mutation {
		return mutation{name, promise, []edit{{"engine/" + file, before, after}}, []string{"./engine"}, ""}
	}
	return []mutation{
		in("engine: one request for one count", "P8", "call.go", "if c.sent {", "if false {"),
		in("engine: stop on an unknown outcome", "P10", "call.go", "a.as.Task.Policy.OnUnknown == onereply.UnknownStop", "false"),
		in("engine: a call ends with its timeout", "P16", "call.go", "a.kind.Policy.CallTimeout", "a.kind.Policy.CallTimeout*1000"),
		in("engine: a call ends with its assignment", "P16", "call.go", "defer context.AfterFunc(a.ctx, func() { end(context.Cause(a.ctx)) })()", ""),
		in("engine: the context ends with the lease", "P16", "renew.go", "func() { a.cancel(onereply.ErrLeaseLost) }", "func() {}"),
		in("engine: every end runs its hook", "P4", "accept.go", "if k.Ended == nil {", "if true {"),
		in("engine: an end that failed is no end", "P4", "accept.go", "return e.runEnded(inside(ctx), tx, ended)", "_ = e.runEnded(inside(ctx), tx, ended)\n\t\treturn nil"),
		in("engine: a lost commit is looked up", "P11", "accept.go", "if !errors.Is(err, onereply.ErrCommitUnknown) {", "if true {"),
	}
}

// transportMutations let Go's HTTP client do what it does by itself.
func transportMutations() []mutation {
	in := func(name, before, after string) mutation {
		return mutation{name, "P8", []edit{{"provider/client.go", before, after}}, []string{"./provider"}, ""}
	}
	return []mutation{
		in("transport: an uncounted request stays", "if err := s.call.Send(); err != nil {", "if err := s.call.Send(); false {"),
		in("transport: a body is not rewound", "out.GetBody = nil", "_ = out"),
		in("transport: no key that invites repetition", "out.Header.Del(\"Idempotency-Key\")", "_ = out"),
		in("transport: redirects are not followed", "return http.ErrUseLastResponse", "return nil"),
	}
}

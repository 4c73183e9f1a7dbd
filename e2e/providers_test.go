//go:build unix

package e2e

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/onereply/onereply/provider/simulator"
)

// wires are the ways to the scripted model, one for each adapter.
var wires = []string{"openai", "openai in the foreground", "anthropic", "compatible"}

// speaks sends the world's processes to the model over one of the wires.
func (w *world) speaks(wire string) {
	w.env = []string{"OPENAI_BASE_URL=" + w.model.server.URL + "/v1", "ANTHROPIC_BASE_URL=" + w.model.server.URL}
	switch wire {
	case "openai":
		w.flags = append(w.flags, "--model", "openai:scripted")
	case "openai in the foreground":
		w.flags = append(w.flags, "--model", "openai:scripted", "--openai-background=false")
	case "anthropic":
		w.flags = append(w.flags, "--model", "anthropic:scripted")
	}
}

// planned does with a request what the plan says.
func planned(p simulator.Plan) step { return func(<-chan struct{}) simulator.Plan { return p } }

// saved waits until the id of the call's operation is durable.
func (w *world) saved() {
	w.t.Helper()
	l := w.ledger()
	eventually(w.t, 20*time.Second, "an operation is saved", func() bool {
		return l.count("SELECT count(*) FROM calls WHERE operation <> ''") > 0
	})
}

// One POST in total: 1. a worker saves the operation, 2. it is lost, 3. another
// looks the operation up and takes its answer.
func TestASavedOperationIsNeverPaidForTwice(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		plan simulator.Plan
		lose func(*world, *process)
		text string
	}{
		"killed in the middle": {
			simulator.Plan{Text: numbered(60), Pace: 50 * time.Millisecond, Finish: "stop"},
			func(_ *world, p *process) { p.kill() }, numbered(60),
		},
		"killed before the first word": {
			simulator.Plan{Delay: 4 * time.Second, Text: "late", Finish: "stop"},
			func(_ *world, p *process) { p.kill() }, "late",
		},
		"killed, and not found at first": {
			simulator.Plan{Delay: time.Second, Text: "hidden", Finish: "stop", Missing: 3},
			func(_ *world, p *process) { p.kill() }, "hidden",
		},
		"frozen, and thawed after the takeover": {
			simulator.Plan{Text: numbered(60), Pace: 50 * time.Millisecond, Finish: "stop"},
			func(w *world, p *process) {
				w.freezeInCall(p)
				w.t.Cleanup(func() {
					if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil && !strings.Contains(err.Error(), "already finished") {
						w.t.Error(err)
					}
				})
			}, numbered(60),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.speaks("openai")
			w.model.script("q", planned(test.plan))
			p := w.start("api,sweep")
			doomed := w.start("work")
			task := w.ask(p, "q", nil)
			w.saved()
			test.lose(w, doomed)
			w.start("work")
			w.expect(p, task.ID, want{status: "completed", text: test.text, version: 2, attempts: 2, calls: 1, requests: 1})
			operations := w.model.sim.Operations()
			if len(operations) != 1 || operations[0].Cancels != 0 || operations[0].Lookups == 0 {
				t.Errorf("operations %+v, want one that was looked up", operations)
			}
			w.settle(p)
		})
	}
}

// A drain hands an operation over at once, and Stop reaches the provider.
func TestAnOperationIsHandedOverOrStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.calm()
	w.speaks("openai")
	w.model.script("handed-over", paced(60, 50*time.Millisecond))
	w.model.script("stopped", hang("half an "))
	p := w.start("api,sweep")
	drained := w.start("work", "--drain", "10m")
	task := w.ask(p, "handed-over", nil)
	w.saved()
	drained.signal(syscall.SIGTERM)
	if code := drained.exited(15 * time.Second); code != 0 {
		t.Errorf("exit code %d after a drain, want 0", code)
	}
	w.start("work")
	w.expect(p, task.ID, want{status: "completed", text: numbered(60), version: 2, attempts: 2, calls: 1, requests: 1})
	stopped := w.ask(p, "stopped", nil)
	w.api(p).await(stopped.ID, "it runs", func(t taskJSON) bool { return t.Status == "running" })
	eventually(t, 20*time.Second, "the second operation is saved", func() bool {
		return w.ledger().count("SELECT count(*) FROM calls WHERE operation <> ''") == 2
	})
	if got, err := w.api(p).cancel(stopped.ID); err != nil || got.status != http.StatusOK {
		t.Fatalf("stopping: %d %v %s", got.status, err, got.body)
	}
	eventually(t, 10*time.Second, "the provider was asked to stop", func() bool {
		operations := w.model.sim.Operations()
		return len(operations) == 2 && operations[1].Status == "cancelled"
	})
	w.settle(p)
}

// One refusal slows the whole process: of twenty tasks one meets it, the others
// wait at the gate and no call is counted for that.
func TestOneRefusalIsEnoughForAProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.calm()
	refusal := refuse(http.StatusTooManyRequests, "rate_limit_exceeded", "2")
	var once sync.Once
	texts := make([]string, 20)
	for i := range texts {
		texts[i] = "q" + strconv.Itoa(i)
		w.model.script(texts[i], func(ended <-chan struct{}) (p simulator.Plan) {
			p = say("answered")(ended)
			once.Do(func() { p = refusal(ended) })
			return p
		})
	}
	p := w.start(everything, "--model-gate=true", "--model-concurrency", "1", "--workers", "20")
	a := w.api(p)
	conversation := a.conversation()
	ids := make([]string, len(texts))
	for i, text := range texts {
		ids[i] = w.send(a, conversation, "key-of-"+text, text, nil).ID
	}
	for _, id := range ids {
		if end := a.awaitEnd(id); end.Status != "completed" {
			t.Errorf("task %s is %s", id, end)
		}
	}
	if calls := w.ledger().count("SELECT sum(calls_used) FROM tasks"); calls != 21 || w.model.sim.Total() != 21 {
		t.Errorf("%d calls counted and %d requests, want 21: one refusal and twenty answers", calls, w.model.sim.Total())
	}
	records := w.model.sim.Records()
	if wait := records[1].Started.Sub(records[0].Ended); wait < 2*time.Second {
		t.Errorf("the next call came after %v", wait)
	}
	w.settle(p)
}

// The cases about providers, each over every wire.
var providerCases = []struct {
	name string
	test func(w *world, wire string)
}{
	{"23: retries do not multiply", caseRetries},
	{"25: an error event after HTTP 200", caseErrorEvent},
	{"27: a content filter with an empty answer", caseFilter},
	{"29: Retry-After", caseRetryAfter},
	{"31: garbage instead of an answer", caseGarbage},
}

func TestCasesOfProviders(t *testing.T) {
	t.Parallel()
	for _, c := range providerCases {
		for _, wire := range wires {
			t.Run(c.name+", "+wire, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.calm()
				w.speaks(wire)
				c.test(w, wire)
			})
		}
	}
}

// spent is the end of a task that used its three calls.
func spent(code string) want {
	return want{status: "failed", reason: "calls_exhausted", code: code, version: 3, attempts: 3, calls: 3, requests: 3}
}

// ended is the end of a task after one call that no other would better.
func ended(code string) want {
	return want{status: "failed", reason: "permanent", code: code, version: 1, attempts: 1, calls: 1, requests: 1}
}

// caseRetries: nothing but the task repeats a call, and a key sent again repeats
// nothing.
func caseRetries(w *world, _ string) {
	p := w.start(everything)
	a := w.api(p)
	conversation := a.conversation()
	for status, code := range map[int]string{http.StatusTooManyRequests: "rate_limited", http.StatusServiceUnavailable: "provider_unavailable"} {
		text := "always-" + strconv.Itoa(status)
		w.model.script(text, refuse(status, "", ""))
		task := w.send(a, conversation, "key-of-"+text, text, nil)
		w.expect(p, task.ID, spent(code))
		w.replay(a, conversation, "key-of-"+text, text, nil, task.ID)
		w.expect(p, task.ID, spent(code))
		asked := w.model.asked(text)
		for i := 1; i < len(asked); i++ {
			if !asked[i].Started.After(asked[i-1].Ended) {
				w.t.Errorf("call %d began before the one before it ended", i+1)
			}
		}
	}
	w.settle(p)
}

// caseErrorEvent: half an answer and an overload are no answer, and nothing of
// it is joined to the next one.
func caseErrorEvent(w *world, _ string) {
	overload := planned(simulator.Plan{Text: "one two three", Fault: simulator.ErrorEvent, After: 2, Code: "overloaded_error"})
	w.model.script("once", overload, say("second"))
	w.model.script("always", overload)
	p := w.start(everything)
	w.expect(p, w.ask(p, "once", nil).ID, twoCalls)
	failed := w.ask(p, "always", nil)
	w.expect(p, failed.ID, spent("provider_overloaded"))
	if n := w.ledger().count("SELECT count(*) FROM messages WHERE role = 'assistant'"); n != 1 {
		w.t.Errorf("%d replies are saved, want the one", n)
	}
	w.settle(p)
}

// caseFilter: what a filter stopped is final, is no message, and does not poison
// the next turn.
func caseFilter(w *world, _ string) {
	p := w.start(everything)
	a := w.api(p)
	filtered := ended("content_filtered")
	w.model.script("empty", planned(simulator.Plan{Finish: "content_filter", After: simulator.Everything}))
	w.model.script("refused", refuse(http.StatusBadRequest, "content_policy_violation", ""))
	conversation := a.conversation()
	for _, text := range []string{"empty", "refused"} {
		w.expect(p, w.send(a, conversation, "key-of-"+text, text, nil).ID, filtered)
	}
	next := w.send(a, conversation, "key-of-next", "next", nil)
	w.expect(p, next.ID, want{status: "completed", text: "answer to next", version: 1, attempts: 1, calls: 1, requests: 1})
	roles := []string{}
	for _, m := range w.model.asked("next")[0].Messages {
		if strings.TrimSpace(m.Text) == "" {
			w.t.Error("an empty message went out")
		}
		roles = append(roles, m.Role)
	}
	if !slices.Equal(roles, []string{"user"}) {
		w.t.Errorf("the roles of the next request are %v", roles)
	}
	if n := w.ledger().count("SELECT count(*) FROM messages WHERE role = 'assistant'"); n != 1 {
		w.t.Errorf("%d assistant messages are stored, want the one answer", n)
	}
	w.settle(p)
}

// caseRetryAfter: the provider's wish is kept, or ends the task at once where it
// outlasts the budget; what cannot be read is normal backoff.
func caseRetryAfter(w *world, _ string) {
	p := w.start(everything)
	limited := func(after string) step { return refuse(http.StatusTooManyRequests, "rate_limit_exceeded", after) }
	date := time.Now().Add(3 * time.Second).UTC().Format(http.TimeFormat)
	for text, after := range map[string]string{"seconds": "2", "date": date, "odd": "-1", "word": "soon"} {
		w.model.script(text, limited(after), say("second"))
	}
	w.model.script("hours", limited("10800"))
	w.model.script("quota", refuse(http.StatusTooManyRequests, "insufficient_quota", "1"))
	w.model.script("deadline", limited("2"))
	tasks := map[string]string{}
	for _, text := range []string{"seconds", "date", "odd", "word", "hours", "quota"} {
		tasks[text] = w.ask(p, text, nil).ID
	}
	tasks["deadline"] = w.ask(p, "deadline", policy{"deadline": time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano)}).ID
	once := want{status: "failed", code: "rate_limited", version: 1, attempts: 1, calls: 1, requests: 1}
	hours, deadline := once, once
	hours.reason, deadline.reason = "elapsed_exhausted", "deadline_exceeded"
	w.expect(p, tasks["hours"], hours)
	w.expect(p, tasks["quota"], ended("insufficient_quota"))
	w.expect(p, tasks["deadline"], deadline)
	for _, text := range []string{"seconds", "date", "odd", "word"} {
		w.expect(p, tasks[text], twoCalls)
	}
	if asked := w.model.asked("seconds"); asked[1].Started.Sub(asked[0].Ended) < 2*time.Second {
		w.t.Error("the next call came before the two seconds were over")
	}
	if at, err := http.ParseTime(date); err != nil || w.model.asked("date")[1].Started.Before(at) {
		w.t.Errorf("the next call came before the date: %v", err)
	}
	w.settle(p)
}

// caseGarbage: a web page, an error object, an event that is no JSON, a mountain
// of text and a tool call are no answers.
func caseGarbage(w *world, wire string) {
	p := w.start(everything)
	a := w.api(p)
	conversation := a.conversation()
	raw := func(contentType, body string) step {
		return planned(simulator.Plan{Fault: simulator.Raw, ContentType: contentType, Body: body})
	}
	garbage := map[string]step{
		"page":   raw("text/html; charset=utf-8", "<!doctype html><h1>Sign in</h1>"),
		"error":  raw("application/json", `{"error":{"message":"m","type":"server_error"}}`),
		"object": raw("application/json", `{}`),
		"10-MB":  planned(simulator.Plan{Text: strings.Repeat(strings.Repeat("x", 65535)+" ", 160), Finish: "stop"}),
	}
	if wire != "openai" { // which finds the whole answer afterwards
		garbage["broken"] = planned(simulator.Plan{Text: "one two three", Fault: simulator.BrokenJSON, After: 2})
	}
	for text, step := range garbage {
		w.model.script(text, step)
		end := w.expect(p, w.send(a, conversation, "key-of-"+text, text, nil).ID, spent("bad_provider_response"))
		if m := end.Error.Message; strings.ContainsAny(m, "<>") || len(m) > 300 {
			w.t.Errorf("%s shows %.100q", text, m)
		}
	}
	for text, fault := range map[string]simulator.Fault{"tool": simulator.ToolCall, "cut-tool": simulator.CutTool} {
		w.model.script(text, planned(simulator.Plan{Fault: fault}))
		w.expect(p, w.send(a, conversation, "key-of-"+text, text, nil).ID, ended("tool_calls_unsupported"))
	}
	next := w.send(a, conversation, "key-of-next", "next", nil)
	w.expect(p, next.ID, want{status: "completed", text: "answer to next", version: 1, attempts: 1, calls: 1, requests: 1})
	if messages := w.model.asked("next")[0].Messages; len(messages) != 1 {
		w.t.Errorf("the next request carries %+v", messages)
	}
	w.settle(p)
}

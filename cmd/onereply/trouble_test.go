package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/client"
)

// following runs ask --follow t1 against a service that answers its stream so.
func following(t *testing.T, stream http.HandlerFunc) (result, string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/tasks/t1/events", stream)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	var out, err bytes.Buffer
	p := &process{stdout: &out, stderr: &err, lookup: noVariables, patience: 200 * time.Millisecond}
	code := p.run(t.Context(), []string{"ask", "--follow", "t1", "--server", server.URL})
	return result{code, out.String(), err.String()}, server.URL
}

func TestAskGivesUpOnAServerThatStaysAway(t *testing.T) {
	t.Parallel()
	first := true
	got, url := following(t, func(w http.ResponseWriter, _ *http.Request) {
		if first {
			first = false
			fmt.Fprint(w, "event: delta\nid: 1.1\ndata: {\"text\":\"half an\"}\n\n")
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	if got.code != exitFailed || got.stdout != "half an\n" || !strings.Contains(got.stderr, "gave up") ||
		!strings.Contains(got.stderr, "come back with: onereply ask --follow t1 --server "+url+"\n") {
		t.Errorf("%+v", got)
	}
	if longPatience > 5*time.Minute {
		t.Errorf("a person would wait %v", longPatience)
	}
}

// A failed task says what can be done about it, on a line of its own, and does
// not offer what cannot help.
func TestWhatAFailedTaskOffers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		reason onereply.Reason
		code   string
		with   string
		not    string
	}{
		{"the question cannot be answered", onereply.ReasonPermanent, onereply.CodeContentFiltered, "would fail again", "tasks resume"},
		{"the account is empty", onereply.ReasonPermanent, onereply.CodeInsufficientQuota, "once whoever runs the service has mended that, go on with: onereply tasks resume t1", "try again"},
		{"the deadline has passed", onereply.ReasonDeadlineExceeded, onereply.CodeTimeout, "tasks resume t1 --deadline TIME", "try again"},
		{"nobody knows", onereply.ReasonOutcomeUnknown, onereply.CodeTimeout, "may cost twice: onereply tasks resume t1", "try again with"},
		{"the budget is used up", onereply.ReasonCallsExhausted, onereply.CodeRateLimited, "try again with: onereply tasks resume t1", "twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			task, err := json.Marshal(client.Task{ID: "t1", Kind: replyKind, Status: onereply.StatusFailed, Reason: c.reason, Error: &onereply.Failure{Code: c.code, Message: "no\x1b[2Jo"}})
			if err != nil {
				t.Fatal(err)
			}
			got, _ := following(t, func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, "event: delta\nid: 1.1\ndata: {\"text\":\"half\\u001b[31m\"}\n\nevent: failed\nid: end\ndata: %s\n\n", task)
			})
			if got.code != exitFailed || !strings.Contains(got.stderr, c.with) || strings.Contains(got.stderr, c.not) || !strings.Contains(got.stderr, c.code) {
				t.Errorf("%+v", got)
			}
			if got.stdout != "half␛[31m\n" || strings.Contains(got.stderr, "\x1b") {
				t.Errorf("printed %q and %q: want a whole line, without escapes", got.stdout, got.stderr)
			}
		})
	}
}

func TestARefusedQuestionLeavesNoConversationBehind(t *testing.T) {
	t.Parallel()
	s := start(t, filepath.Join(t.TempDir(), "x.db"), "--max-message", "100")
	env := map[string]string{"ONEREPLY_SERVER": s.url}
	got := execute(t, env, "ask", strings.Repeat("long ", 30))
	if got.code != exitFailed || !strings.Contains(got.stderr, "100 bytes") {
		t.Errorf("%+v", got)
	}
	c, err := client.New(s.url, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := c.Conversations(t.Context(), client.Page{}); err != nil || len(left.Data) != 0 {
		t.Errorf("left behind: %+v, %v", left, err)
	}
	// One that was there before stays, whatever is refused in it.
	conv, err := c.NewConversation(t.Context(), "kept")
	if err != nil {
		t.Fatal(err)
	}
	if got := execute(t, env, "ask", strings.Repeat("long ", 30), "--conversation", conv.ID); got.code != exitFailed {
		t.Errorf("%+v", got)
	}
	if _, err := c.Conversation(t.Context(), conv.ID); err != nil {
		t.Error(err)
	}
}

func TestAskReadsStandardInput(t *testing.T) {
	t.Parallel()
	s := start(t, filepath.Join(t.TempDir(), "x.db"))
	for name, c := range map[string]struct {
		args  []string
		input string
		want  string
	}{
		"as the question": {[]string{"-"}, "What is a lease?\n\n" + text + "\n", "A lease is a time limit."},
		"as a file":       {[]string{"What is a lease?", "--file", "-"}, text, "A lease is a time limit."},
		"with no text":    {[]string{"-"}, "\n", "holds no text"},
		"with no UTF-8":   {[]string{"q", "--file", "-"}, "\xff", "standard input is not UTF-8 text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, err bytes.Buffer
			p := &process{stdin: strings.NewReader(c.input), stdout: &out, stderr: &err, lookup: noVariables}
			code := p.run(t.Context(), append([]string{"ask", "--server", s.url}, c.args...))
			if said := out.String() + err.String(); !strings.Contains(said, c.want) || (code == exitDone) != strings.HasPrefix(c.want, "A lease") {
				t.Errorf("code %d, said %q, want %q", code, said, c.want)
			}
		})
	}
}

func TestAResumedTaskSaysHowToFollowIt(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/tasks/t1/resume", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, `{"id":"t1","kind":"reply","status":"queued"}`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	env := map[string]string{"ONEREPLY_SERVER": server.URL}
	if got := execute(t, env, "tasks", "resume", "t1"); got.code != exitDone || got.stderr != "follow it: onereply ask --follow t1 --server "+server.URL+"\n" {
		t.Errorf("%+v", got)
	}
	if got := execute(t, env, "tasks", "resume", "t1", "--json"); got.code != exitDone || got.stderr != "" {
		t.Errorf("%+v", got)
	}
}

// The first thing a person is told to try has to work as it is printed.
func TestTheQuestionThatIsSuggestedGetsAGoodAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, filepath.Join(t.TempDir(), "x.db"))
	words := regexp.MustCompile(`^ask "(.*)"$`).FindStringSubmatch(firstQuestion)
	if words == nil {
		t.Fatal(firstQuestion)
	}
	got := execute(t, map[string]string{"ONEREPLY_SERVER": s.url}, "ask", words[1])
	for _, want := range []string{"Anna pays the deposit by Friday.", "Ben calls the caterer on 3 March."} {
		if got.code != exitDone || !strings.Contains(got.stdout, want) || strings.Contains(got.stdout, "long meeting") {
			t.Errorf("%+v", got)
		}
	}
}

// A reader of an answer that ends while the service drains gets its end.
func TestAnAnswerThatEndsInTheDrainIsHeardToItsEnd(t *testing.T) {
	t.Parallel()
	for n := range 5 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			s := start(t, filepath.Join(t.TempDir(), "x.db"), "--demo-delay", "10ms")
			c, err := client.New(s.url, client.Options{Patience: -1})
			if err != nil {
				t.Fatal(err)
			}
			conv, err := c.NewConversation(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			sent, err := c.Send(t.Context(), conv.ID, c.NewKey(), "What is a lease?\n\n"+text, nil)
			if err != nil {
				t.Fatal(err)
			}
			stopped := make(chan int, 1)
			begun := false
			task, err := c.Follow(t.Context(), sent.Task.ID, "", func(client.Delta) error {
				if !begun {
					begun = true
					go func() { stopped <- s.stop() }()
				}
				return nil
			})
			if err != nil || task.Status != onereply.StatusCompleted {
				t.Errorf("the reader got %+v, %v", task, err)
			}
			if begun {
				if code := <-stopped; code != exitDone {
					t.Errorf("serve ended with %d", code)
				}
			}
		})
	}
}

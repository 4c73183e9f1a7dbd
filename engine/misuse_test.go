package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/store"
)

func TestUnderStopNoCallFollowsAnUnknownOneInTheSameAttempt(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func() error{
		"an error": func() error { return errBroken },
		"a panic":  func() error { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, h *house) {
				var sent atomic.Int32
				k := &kind{Name: "again", Policy: onereply.Policy{OnUnknown: onereply.UnknownStop}}
				k.Work = func(ctx context.Context, a onereply.Attempt, _ ask) (out answer, err error) {
					func() {
						defer func() { _ = recover() }()
						_ = a.Call(ctx, func(context.Context, onereply.Call) error { sent.Add(1); return end() })
					}()
					err = a.Call(ctx, func(context.Context, onereply.Call) error { sent.Add(1); return nil })
					if !errors.Is(err, onereply.ErrOutcomeUnknown) {
						t.Errorf("the second call gave %v", err)
					}
					return answer{Text: "paid twice"}, err
				}
				e := h.start(engine.Options{}, k)
				task := h.wait(e, h.submit(e, k, "k", "x").ID)
				if task.Reason != onereply.ReasonOutcomeUnknown || sent.Load() != 1 || task.Budget.Calls.Used != 1 {
					t.Errorf("%s %s after %d sends and %d counts", task.Status, task.Reason, sent.Load(), task.Budget.Calls.Used)
				}
			})
		})
	}
}

func TestAHookThatWouldWaitForItselfIsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		var e *engine.Engine
		k := echo()
		s, err := k.Submission("w", "inner", ask{Text: "y"})
		if err != nil {
			t.Fatal(err)
		}
		k.Created = func(ctx context.Context, _ onereply.Tx, all []onereply.Created[ask]) error {
			if all[0].In.Text == "y" {
				return nil
			}
			_, err := e.Submit(ctx, s)
			return err
		}
		e = h.start(engine.Options{}, k)
		outer, err := k.Submission("w", "outer", ask{Text: "x"})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := e.Submit(t.Context(), outer); !errors.Is(err, onereply.ErrInvalid) {
			t.Errorf("submit gave %v", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// late delays one answer of Drafts, which then holds an older state than what
// was read and applied in between.
type late struct {
	store.Store
	hold atomic.Pointer[chan struct{}]
}

func (l *late) Drafts(ctx context.Context, p []store.Position) ([]store.Draft, error) {
	d, err := l.Store.Drafts(ctx, p)
	if hold := l.hold.Swap(nil); hold != nil {
		<-*hold
	}
	return d, err
}

func TestAStaleReadDoesNotBringAnEndedTopicBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		l := &late{Store: h.store}
		h.wrap = func(store.Store) store.Store { return l }
		k := typist(10, 20*time.Millisecond, nil)
		e := h.start(engine.Options{}, k)
		id := h.submit(e, k, "k", "x").ID
		first := subscribe(t, e, id, "") // keeps the topic
		<-time.After(50 * time.Millisecond)
		release := make(chan struct{})
		l.hold.Store(&release)
		joined := make(chan *engine.Subscription, 1)
		go func() {
			s, err := e.Subscribe(t.Context(), "w", id, "")
			if err != nil {
				t.Error(err)
			}
			joined <- s
		}()
		synctest.Wait()
		var a, b reader
		a.read(t, first, nil)
		close(release)
		second := <-joined
		defer second.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for b.end == nil {
			ev, err := second.Next(ctx)
			if err != nil {
				t.Fatalf("the reader that joined late hangs: %v", err)
			}
			b.end = ev.Task
		}
	})
}

func TestATaskWhoseInputNoLongerDecodesEnds(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := echo()
		face := h.engine(engine.Options{Workers: -1}, k)
		id := h.submit(face, k, "k", "text").ID
		other := &onereply.Definition[struct{ Text int }, answer]{Name: "echo"}
		var ended atomic.Int32
		other.Work = func(context.Context, onereply.Attempt, struct{ Text int }) (answer, error) { return answer{}, nil }
		other.Ended = func(_ context.Context, _ onereply.Tx, all []onereply.Ended[struct{ Text int }, answer]) error {
			ended.Add(int32(len(all)))
			return nil
		}
		e := h.start(engine.Options{Kinds: []onereply.Kind{other.Kind()}})
		if task := h.wait(e, id); task.Status != onereply.StatusFailed || task.Error.Code != "invalid_input" || ended.Load() != 1 {
			t.Errorf("%s %+v, the hook ran %d times", task.Status, task.Error, ended.Load())
		}
	})
}

// slowClaim answers a claim only after the engine's own context has ended.
type slowClaim struct {
	store.Store
	claimed chan struct{}
	answer  chan struct{}
}

func (s *slowClaim) Claim(ctx context.Context, c store.Claim) (store.Claimed, error) {
	claimed, err := s.Store.Claim(ctx, c)
	if len(claimed.Assignments) > 0 {
		close(s.claimed)
		<-s.answer
	}
	return claimed, errors.Join(err, ctx.Err())
}

func TestAClaimUnderWayWhenTheProcessGoesIsPutBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		s := &slowClaim{Store: h.store, claimed: make(chan struct{}), answer: make(chan struct{})}
		h.wrap = func(store.Store) store.Store { return s }
		k := &kind{Name: "slow", Work: func(ctx context.Context, _ onereply.Attempt, _ ask) (answer, error) {
			<-ctx.Done()
			return answer{}, context.Cause(ctx)
		}}
		e := h.engine(engine.Options{}, k)
		stop := h.run(e)
		id := h.submit(e, k, "k", "x").ID
		<-s.claimed
		go stop()
		synctest.Wait()
		close(s.answer)
		synctest.Wait()
		stop()
		task, err := e.Task(t.Context(), "w", id)
		if err != nil || task.Status != onereply.StatusQueued || task.Attempts[0].Outcome != onereply.OutcomeInterrupted {
			t.Errorf("%s %+v, %v", task.Status, task.Attempts, err)
		}
	})
}

func TestWorkThatEndsItsGoroutineIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := &kind{Name: "goexit", Policy: onereply.Policy{MaxAttempts: 2}}
		k.Work = func(context.Context, onereply.Attempt, ask) (answer, error) { runtime.Goexit(); return answer{}, nil }
		e := h.start(engine.Options{Workers: 1}, k)
		if task := h.wait(e, h.submit(e, k, "k", "x").ID); task.Reason != onereply.ReasonAttemptsExhausted {
			t.Errorf("%s %s", task.Status, task.Reason)
		}
	})
}

func TestAPanicInOneCreatedHookFailsItsCallerAlone(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := echo()
		k.Created = func(_ context.Context, _ onereply.Tx, all []onereply.Created[ask]) error {
			for _, c := range all {
				if c.In.Text == "bad" {
					panic("boom")
				}
			}
			return nil
		}
		e := h.start(engine.Options{}, k)
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				text := "good"
				if i%20 == 7 {
					text = "bad"
				}
				s, err := k.Submission("w", fmt.Sprint(i), ask{Text: text})
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := e.Submit(t.Context(), s); (err != nil) != (text == "bad") {
					t.Errorf("%s one gave %v", text, err)
				}
			})
		}
		wg.Wait()
	})
}

func TestARefusedDraftIsNotSentAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := &kind{Name: "deaf", Policy: onereply.Policy{CallTimeout: time.Second}}
		k.Work = func(_ context.Context, a onereply.Attempt, _ ask) (answer, error) {
			if a.Assignment().Guard.Version > 1 {
				return answer{Text: "second"}, nil
			}
			<-time.After(40 * time.Second) // past its lease, deaf to its context
			for range 100 {
				_ = a.Draft(t.Context(), "late ")
				<-time.After(20 * time.Millisecond)
			}
			return answer{Text: "first"}, nil
		}
		e := h.start(engine.Options{}, k)
		id := h.submit(e, k, "k", "x").ID
		h.wait(e, id)
		<-time.After(2 * time.Minute)
		timeline, err := e.Timeline(t.Context(), "w", id)
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range timeline {
			if ev.Type == onereply.EventFencedOut && ev.Count > 2 {
				t.Errorf("%d refused writes of one kind", ev.Count)
			}
		}
	})
}

func TestWhatCanNeverEndIsNotSubmitted(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := echo()
		k.Policy.MaxElapsed = time.Hour
		e := h.start(engine.Options{}, k)
		for name, change := range map[string]func(*onereply.Submission){
			"a delay beyond the budget":   func(s *onereply.Submission) { s.Delay = time.Hour },
			"a deadline before the delay": func(s *onereply.Submission) { s.Delay, s.Deadline = time.Minute, time.Now().Add(time.Second) },
			"a deadline that JSON lacks": func(s *onereply.Submission) {
				s.Deadline = time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600))
			},
			"a deadline before all":     func(s *onereply.Submission) { s.Deadline = time.Date(0, 1, 1, 0, 0, 0, 0, time.FixedZone("", 86340)) },
			"the deadline that is none": func(s *onereply.Submission) { s.Deadline = time.Unix(0, 0) },
			"the scope of all":          func(s *onereply.Submission) { s.Scope = engine.AnyScope },
		} {
			s, err := k.Submission("w", name, ask{})
			if err != nil {
				t.Fatal(err)
			}
			change(&s)
			if _, err := e.Submit(t.Context(), s); !errors.Is(err, onereply.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if all, err := e.Tasks(t.Context(), store.Query{Limit: 10}); err != nil || len(all) > 0 {
			t.Errorf("%d tasks, %v", len(all), err)
		}
	})
}

func TestAResponseThatIsNoJSONIsNotAccepted(t *testing.T) {
	t.Parallel()
	for _, out := range []string{"", "not json", `{"a":`} {
		bubble(t, func(t *testing.T, h *house) {
			raw := onereply.Kind{Name: "raw", Work: func(context.Context, onereply.Attempt) (json.RawMessage, error) { return json.RawMessage(out), nil }}
			e := h.start(engine.Options{Kinds: []onereply.Kind{raw}})
			r, err := e.Submit(t.Context(), onereply.Submission{Scope: "w", Key: "k", Kind: "raw", Input: json.RawMessage("{}"), Fingerprint: []byte("f")})
			if err != nil {
				t.Fatal(err)
			}
			if task := h.wait(e, r.Task.ID); task.Status != onereply.StatusFailed || task.Error.Code != "invalid_response" {
				t.Errorf("%q: %s %+v", out, task.Status, task.Error)
			}
		})
	}
}

func TestAReaderThatComesBackWithAnotherAssignmentsPlaceIsReset(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := typist(5, 20*time.Millisecond, func(version int64, word int) error {
			if version == 1 && word == 3 {
				return onereply.UnknownOutcome(onereply.CodeTimeout, errBroken)
			}
			return nil
		})
		e := h.start(engine.Options{}, k)
		id := h.submit(e, k, "k", "x").ID
		h.wait(e, id)
		for last, resets := range map[string]int{"1.3": 1, "7.7": 1, "rubbish": 1, "2.1": 0, "2.99": 0, "": 0} {
			r := reader{text: "what it had"}
			r.read(t, subscribe(t, e, id, last), nil)
			if r.resets != resets || r.end == nil || strings.Contains(r.text, "had") != (resets == 0) {
				t.Errorf("after %q: %d resets, text %q, end %v", last, r.resets, r.text, r.end != nil)
			}
		}
	})
}

func TestAnInternalErrorsTextStaysInTheLog(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *house) {
		k := &kind{Name: "leaky", Policy: onereply.Policy{MaxAttempts: 1}}
		k.Work = func(context.Context, onereply.Attempt, ask) (answer, error) {
			return answer{}, errors.New("get https://user:hunter2@internal.example: refused")
		}
		e := h.start(engine.Options{}, k)
		task := h.wait(e, h.submit(e, k, "k", "x").ID)
		if task.Error == nil || strings.Contains(task.Error.Message, "hunter2") || task.Error.Message == "" {
			t.Errorf("error %+v", task.Error)
		}
	})
}

//go:build unix

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onereply/onereply/provider/simulator"
)

// model is the scripted provider with a script for each question: what happens
// to the first, the second and every later request for it. A question without a
// script is answered with "answer to <question>".
type model struct {
	t      *testing.T
	sim    *simulator.Simulator
	server *httptest.Server

	mu      sync.Mutex
	scripts map[string][]step
	ended   chan struct{} // closed when the test is over: nothing is held any longer
}

// step says what to do with one request. It may wait before it says so.
type step func(ended <-chan struct{}) simulator.Plan

func startModel(t *testing.T) *model {
	m := &model{t: t, scripts: map[string][]step{}, ended: make(chan struct{})}
	m.sim = simulator.New(simulator.Options{Script: m.plan})
	m.server = httptest.NewServer(m.sim)
	t.Cleanup(func() {
		close(m.ended)
		m.sim.Close()
		m.server.CloseClientConnections()
		m.server.Close()
	})
	return m
}

func (m *model) plan(r simulator.Request) (simulator.Plan, bool) {
	m.mu.Lock()
	steps := m.scripts[r.Prompt]
	m.mu.Unlock()
	turn := len(m.asked(r.Prompt))
	if len(steps) == 0 {
		steps = []step{say("answer to " + r.Prompt)}
	}
	return steps[min(turn, len(steps))-1](m.ended), true
}

// flag is the --model value that leads here.
func (m *model) flag() string { return modelAt(m.server.URL) }

func modelAt(url string) string { return "compatible:scripted@" + url + "/v1" }

// script says what happens to the first, second, … request for a question; the
// last step is for all that follow.
func (m *model) script(text string, steps ...step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scripts[text] = steps
}

// asked returns the requests for a question, in their order.
func (m *model) asked(text string) []simulator.Record { return about(m.sim.Records(), text) }

func about(records []simulator.Record, text string) []simulator.Record {
	var found []simulator.Record
	for _, r := range records {
		if r.Prompt == text {
			found = append(found, r)
		}
	}
	return found
}

// awaitAsked waits until a question has been asked n times.
func (m *model) awaitAsked(text string, n int) {
	m.t.Helper()
	m.await(20*time.Second, fmt.Sprintf("request %d for %q", n, text), func(all []simulator.Record) bool { return len(about(all, text)) >= n })
}

// awaitLeft waits until the caller of the n-th request for a question has left.
func (m *model) awaitLeft(text string, n int, within time.Duration) {
	m.t.Helper()
	m.await(within, fmt.Sprintf("the caller of request %d for %q leaves", n, text), func(all []simulator.Record) bool {
		asked := about(all, text)
		return len(asked) >= n && asked[n-1].Left
	})
}

func (m *model) await(within time.Duration, what string, holds func([]simulator.Record) bool) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := m.sim.Wait(ctx, holds); err != nil {
		m.t.Fatalf("not within %v: %s", within, what)
	}
}

// say answers in full.
func say(text string) step {
	return func(<-chan struct{}) simulator.Plan { return simulator.Plan{Text: text, Finish: "stop"} }
}

// gate holds requests until it is opened.
type gate struct {
	once sync.Once
	ch   chan struct{}
}

func newGate() *gate { return &gate{ch: make(chan struct{})} }

func (g *gate) open() { g.once.Do(func() { close(g.ch) }) }

// held waits at the gate, whoever leaves meanwhile, before it goes on.
func held(g *gate, then step) step {
	return func(ended <-chan struct{}) simulator.Plan {
		select {
		case <-g.ch:
		case <-ended:
		}
		return then(ended)
	}
}

// faulty says some text and then meets a fault; without a text the fault comes
// before the first byte.
func faulty(text string, f simulator.Fault) step {
	return func(<-chan struct{}) simulator.Plan {
		if text == "" {
			return simulator.Plan{Fault: f, After: simulator.Before}
		}
		return simulator.Plan{Text: text, Fault: f, After: simulator.Everything}
	}
}

// hang says something and never goes on; cutOff ends the connection instead.
// All of an answer without its end is a cut too: the provider has finished and
// nobody can know.
func hang(text string) step   { return faulty(text, simulator.Hang) }
func cutOff(text string) step { return faulty(text, simulator.Cut) }

// refuse answers with an error status.
func refuse(status int, code, retryAfter string) step {
	return func(<-chan struct{}) simulator.Plan {
		return simulator.Plan{Fault: simulator.Status, Status: status, Code: code, RetryAfter: retryAfter}
	}
}

// paced says n numbered words, one each pace.
func paced(n int, pace time.Duration) step {
	return func(<-chan struct{}) simulator.Plan {
		return simulator.Plan{Text: numbered(n), Pace: pace, Finish: "stop"}
	}
}

// numbered is what paced says.
func numbered(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprintf("t%d", i)
	}
	return strings.Join(words, " ")
}

// closedPort gives an address on which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

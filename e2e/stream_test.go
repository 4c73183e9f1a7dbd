//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/onereply/onereply/internal/sse"
)

// follower reads a task's stream as a browser would: it reconnects with the
// last id it has seen, for as long as there has been no terminal event.
type follower struct {
	task string
	url  func() string // where the service is now
	stop context.CancelFunc
	over chan struct{}

	mu       sync.Mutex
	text     string // deltas appended, replaced by resets
	resets   int
	terminal []string
	faults   []string
	final    taskJSON
}

func follow(ctx context.Context, id string, url func() string) *follower {
	ctx, stop := context.WithCancel(ctx)
	f := &follower{task: id, url: url, stop: stop, over: make(chan struct{})}
	go func() {
		defer close(f.over)
		last := ""
		for ctx.Err() == nil && !f.ended() {
			if err := f.connect(ctx, &last); err != nil {
				f.fault(err.Error())
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(30 * time.Millisecond):
			}
		}
	}()
	return f
}

func (f *follower) ended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.terminal) > 0
}

func (f *follower) fault(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, text)
}

// connect reads one connection to its end. That the service is away is no
// fault; an answer other than a stream is.
func (f *follower) connect(ctx context.Context, last *string) error {
	url := f.url()
	if url == "" {
		return nil
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/tasks/"+f.task+"/events", nil)
	if err != nil {
		return err
	}
	if *last != "" {
		r.Header.Set("Last-Event-ID", *last)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	w, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return nil // away; it comes back
	}
	defer w.Body.Close()
	if w.StatusCode == http.StatusServiceUnavailable {
		return nil
	}
	if w.StatusCode != http.StatusOK {
		return fmt.Errorf("stream answered %d after id %q", w.StatusCode, *last)
	}
	events := sse.NewReader(w.Body, 16<<20)
	for {
		e, err := events.Next()
		if err != nil {
			return nil // cut, or ended
		}
		if err := f.take(e); err != nil {
			return err
		}
		*last = e.ID
	}
}

func (f *follower) take(e sse.Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.terminal) > 0 {
		return fmt.Errorf("event %s %s after the terminal one", e.Type, e.ID)
	}
	var body struct{ Text string }
	switch e.Type {
	case "delta", "reset":
		if err := json.Unmarshal([]byte(e.Data), &body); err != nil {
			return err
		}
		if e.Type == "reset" {
			f.text = ""
			f.resets++
		}
		f.text += body.Text
	case "completed", "failed", "cancelled":
		f.terminal = append(f.terminal, e.Type)
		if e.ID != "end" {
			return fmt.Errorf("terminal event with id %q", e.ID)
		}
		return json.Unmarshal([]byte(e.Data), &f.final)
	default:
		return fmt.Errorf("event of type %q", e.Type)
	}
	return nil
}

// verdict says what was wrong with the stream of a task that ended as given.
func (f *follower) verdict(end taskJSON) error {
	select {
	case <-f.over:
	case <-time.After(15 * time.Second):
		f.stop()
		<-f.over
		return errors.New("the stream did not end")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case len(f.faults) > 0:
		return errors.New(strings.Join(f.faults, "; "))
	case len(f.terminal) != 1 || f.terminal[0] != end.Status:
		return fmt.Errorf("terminal events %v, the task is %s", f.terminal, end.Status)
	case f.final.ID != end.ID || f.final.text() != end.text():
		return fmt.Errorf("the terminal event shows %s with %q, the task has %q", f.final, f.final.text(), end.text())
	case end.Status == "completed" && !strings.HasPrefix(end.text(), f.text):
		return fmt.Errorf("streamed %q is no beginning of the reply %q", f.text, end.text())
	}
	return nil
}

// rawEvents opens a stream and returns its reader and a way to cut it.
func (a *api) rawEvents(id, last string) (*sse.Reader, int, func()) {
	a.t.Helper()
	ctx, cut := context.WithCancel(a.t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+"/v1/tasks/"+id+"/events", nil)
	if err != nil {
		a.t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	w, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { cut(); _, _ = io.Copy(io.Discard, w.Body); _ = w.Body.Close() })
	return sse.NewReader(w.Body, 16<<20), w.StatusCode, cut
}

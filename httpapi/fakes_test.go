package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/feature/chat"
	"github.com/onereply/onereply/store"
)

// fakeService answers every call with err, and counts the calls that would
// have changed something.
type fakeService struct {
	err     error
	task    onereply.Task
	waited  error // of Wait; nil: err
	changes int
	cut     []error // what the contexts of the changes said
}

func (f *fakeService) changed(ctx context.Context) {
	f.changes++
	if _, bounded := ctx.Deadline(); !bounded {
		f.cut = append(f.cut, errors.New("a change without a bound"))
	}
	if err := ctx.Err(); err != nil {
		f.cut = append(f.cut, err)
	}
}

func (f *fakeService) Task(context.Context, string, onereply.TaskID) (onereply.Task, error) {
	return f.task, f.err
}
func (f *fakeService) Tasks(context.Context, store.Query) ([]onereply.Task, error) { return nil, f.err }
func (f *fakeService) Wait(context.Context, string, onereply.TaskID) (onereply.Task, error) {
	if f.waited != nil {
		return onereply.Task{}, f.waited
	}
	return f.task, f.err
}
func (f *fakeService) Timeline(context.Context, string, onereply.TaskID) ([]onereply.Event, error) {
	return nil, f.err
}
func (f *fakeService) Cancel(ctx context.Context, _ string, _ onereply.TaskID) (onereply.Task, error) {
	f.changed(ctx)
	return f.task, f.err
}
func (f *fakeService) Resume(ctx context.Context, _ engine.Resumption) (onereply.Submitted, error) {
	f.changed(ctx)
	return onereply.Submitted{Task: f.task}, f.err
}
func (f *fakeService) Subscribe(context.Context, string, onereply.TaskID, string) (*engine.Subscription, error) {
	return nil, f.err
}

type fakeChat struct{ *fakeService }

func (f fakeChat) CreateConversation(ctx context.Context, _ chat.NewConversation) (chat.Conversation, bool, error) {
	f.changed(ctx)
	return chat.Conversation{}, true, f.err
}
func (f fakeChat) Conversations(context.Context, string, int, string) ([]chat.Conversation, string, error) {
	return nil, "", f.err
}
func (f fakeChat) Conversation(context.Context, string, string) (chat.Thread, error) {
	return chat.Thread{}, f.err
}
func (f fakeChat) DeleteConversation(ctx context.Context, _ string, _ string) error {
	f.changed(ctx)
	return f.err
}
func (f fakeChat) Send(ctx context.Context, _ chat.SendRequest) (chat.Sent, error) {
	f.changed(ctx)
	return chat.Sent{Created: true}, f.err
}
func (f fakeChat) Regenerate(ctx context.Context, _ chat.RegenerateRequest) (chat.Regenerated, error) {
	f.changed(ctx)
	return chat.Regenerated{Created: true}, f.err
}

const someID = "01890000-0000-7000-8000-000000000000"

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func fakeAPI(t *testing.T, f *fakeService, edit func(*Config)) http.Handler {
	t.Helper()
	c := Config{Engine: f, Chat: fakeChat{f}, Logger: quiet(), MaxMessage: 1000}
	if edit != nil {
		edit(&c)
	}
	return New(c)
}

// do sends a request written as "METHOD path", headers and a body.
func do(h http.Handler, request string, header http.Header, body string) *httptest.ResponseRecorder {
	method, target, _ := strings.Cut(request, " ")
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for name, lines := range header {
		r.Header[name] = lines
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// problemOf checks that an answer is a well-formed problem and returns its code.
func problemOf(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	if media := w.Header().Get("Content-Type"); media != problemMediaType {
		t.Fatalf("status %d with content type %q, want a problem: %s", w.Code, media, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if p.Status != w.Code {
		t.Errorf("status member %d, wire %d", p.Status, w.Code)
	}
	if p.Title == "" || p.Detail == "" {
		t.Errorf("no title or detail: %s", w.Body)
	}
	code, found := strings.CutPrefix(p.Type, problemTypePrefix)
	if !found {
		t.Errorf("type %q", p.Type)
	}
	return code
}

// A wait that the engine's end cuts short is answered like one whose time is up.
func TestAWaitEndsWithTheEngine(t *testing.T) {
	t.Parallel()
	f := &fakeService{task: onereply.Task{ID: someID, Status: onereply.StatusQueued}, waited: onereply.ErrClosed}
	got := do(fakeAPI(t, f, func(*Config) {}), "GET /v1/tasks/"+someID+"?wait=30s", nil, "")
	if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), `"status":"queued"`) {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/onereply/onereply"
)

// Limits of the API. A message's own limit is Config.MaxMessage.
const (
	defaultMaxMessage = 64 << 10
	smallBody         = 16 << 10         // bodies without free text
	answerTimeout     = 30 * time.Second // to write an ordinary answer
	commitTimeout     = 30 * time.Second // for a change, whatever the client does
	probeTimeout      = 2 * time.Second
)

// Config is what the API is made of. Engine and Chat are required.
type Config struct {
	Engine Engine
	Chat   Chat

	// Authorize says which workspace a request acts for. Its errors are
	// ErrUnauthorized, ErrForbidden, or a failure to tell. Nil: everything
	// belongs to the workspace "default".
	Authorize func(*http.Request) (scope string, err error)
	// Host says whether the service answers to a host name (without its port).
	// Nil: to any. A service on a loopback address wants LoopbackHost, so that a
	// web page whose name was pointed at this machine is refused.
	Host func(name string) bool
	// Render makes safe HTML of an answer's Markdown, for ?render=html. Nil: the
	// parameter is refused.
	Render func(markdown string) string
	// Ready says whether the service can do its work, for /readyz. Nil: asks the
	// store for a task.
	Ready func(context.Context) error
	// Page serves what is not the API's. It is not asked for Authorize. Nil:
	// there is no page.
	Page http.Handler

	// MaxMessage is how many bytes of UTF-8 a message's text may have. Default 64 KiB.
	MaxMessage int
	// Shutdown ends streams and waits when it is done, so that a server can shut
	// down. Nil: they end with their clients.
	Shutdown context.Context
	// Logger takes what is the server's own fault. Default slog.Default().
	Logger *slog.Logger
}

// New returns the API as a handler for the whole of a server. It panics when
// the configuration lacks a required part, which is a mistake in the program.
func New(c Config) http.Handler {
	if c.Engine == nil || c.Chat == nil {
		panic("httpapi: Config needs Engine and Chat")
	}
	if c.Authorize == nil {
		c.Authorize = func(*http.Request) (string, error) { return "default", nil }
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = defaultMaxMessage
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Ready == nil {
		c.Ready = c.storeAnswers
	}
	h := &handler{
		Config: c,
		mux:    http.NewServeMux(),
		origin: http.NewCrossOriginProtection(),
		ids:    onereply.NewIDs(),
		stream: newStreamer(func(ctx context.Context, scope string, id onereply.TaskID, last string) (subscription, error) {
			return c.Engine.Subscribe(ctx, scope, id, last)
		}, c.Shutdown),
	}
	for pattern, serve := range h.routes() {
		h.mux.Handle(pattern, h.serve(serve))
	}
	return h
}

// Server returns a server for the API's handler with the limits it needs: slow
// or huge headers are refused, idle connections end, and there is no overall
// read or write timeout, because streams outlive any; the handler bounds each
// body and each write by itself.
func Server(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// LoopbackHost reports whether a host name stands for this machine only.
func LoopbackHost(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.IsLoopback()
}

type handler struct {
	Config
	mux    *http.ServeMux
	origin *http.CrossOriginProtection
	ids    *onereply.IDs
	stream *streamer
}

// route is the handler of one method and path. A returned error is answered as
// a problem, unless an answer has begun.
type route func(w http.ResponseWriter, r *http.Request, scope string) error

// routes lists the whole API; openapi.json documents each line of it.
func (h *handler) routes() map[string]route {
	return map[string]route{
		"POST /v1/conversations":               h.createConversation,
		"GET /v1/conversations":                h.listConversations,
		"GET /v1/conversations/{id}":           h.getConversation,
		"DELETE /v1/conversations/{id}":        h.deleteConversation,
		"POST /v1/conversations/{id}/messages": h.sendMessage,
		"POST /v1/messages/{id}/regenerate":    h.regenerateMessage,
		"GET /v1/tasks":                        h.listTasks,
		"GET /v1/tasks/{id}":                   h.getTask,
		"GET /v1/tasks/{id}/events":            h.streamTask,
		"GET /v1/tasks/{id}/timeline":          h.taskTimeline,
		"POST /v1/tasks/{id}/cancel":           h.cancelTask,
		"POST /v1/tasks/{id}/resume":           h.resumeTask,
		"GET /v1/openapi.json":                 h.serveOpenAPI,
		"GET /problems/{code}":                 h.serveProblemType,
	}
}

type scopeKey struct{}

func (h *handler) serve(serve route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scope, _ := r.Context().Value(scopeKey{}).(string)
		if err := serve(w, r, scope); err != nil {
			h.answerError(w, r, err)
		}
	})
}

// ServeHTTP is the one door.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := &answer{ResponseWriter: w}
	w.Header().Set("X-Request-Id", h.ids.New())
	w.Header().Set("X-Content-Type-Options", "nosniff")
	defer h.recoverPanic(answer, r)
	if err := setDeadline(http.NewResponseController(w).SetWriteDeadline, answerTimeout); err != nil {
		return // the connection is gone
	}
	switch r.URL.Path {
	case "/healthz":
		h.probe(answer, r, func(context.Context) error { return nil })
		return
	case "/readyz":
		h.probe(answer, r, h.Ready)
		return
	}
	api := h.Page == nil || strings.HasPrefix(r.URL.Path, "/v1/") || r.URL.Path == "/v1" || strings.HasPrefix(r.URL.Path, problemTypePrefix)
	if api {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	}
	r, err := h.admit(r, api)
	switch {
	case err != nil:
		h.answerError(answer, r, err)
	case api:
		h.mux.ServeHTTP(answer, r)
	default:
		h.Page.ServeHTTP(answer, r)
	}
}

// admit judges what comes before any route's own checks, in the contract's
// order: who (401), from where (403), whether there is such a route (404, 405).
func (h *handler) admit(r *http.Request, api bool) (*http.Request, error) {
	if api {
		scope, err := h.Authorize(r)
		if err != nil {
			return r, err
		}
		r = r.WithContext(context.WithValue(r.Context(), scopeKey{}, scope))
	}
	if h.Host != nil && !h.Host(hostName(r.Host)) {
		return r, newProblem(codeForbidden, "This service does not answer to that host name.")
	}
	if err := h.origin.Check(r); err != nil {
		return r, newProblem(codeForbidden, "A browser sent this request from another site.")
	}
	if api {
		return r, h.routed(r)
	}
	return r, nil
}

// routed finds out whether the mux has a route, because its own answers to the
// contrary are plain text.
func (h *handler) routed(r *http.Request) error {
	if path.Clean(r.URL.Path) != r.URL.Path || r.Method == http.MethodConnect {
		return newProblem(codeNotFound, "There is no such route.")
	}
	fallback, pattern := h.mux.Handler(r)
	if pattern != "" {
		return nil
	}
	probe := &discard{header: make(http.Header)}
	fallback.ServeHTTP(probe, r)
	if probe.status == http.StatusMethodNotAllowed {
		return newProblem(codeMethodNotAllowed, "This route does not take "+safeMethod(r.Method)+" requests.").
			withHeader("Allow", probe.header.Get("Allow"))
	}
	return newProblem(codeNotFound, "There is no such route.")
}

func safeMethod(m string) string {
	if len(m) > 10 {
		return "such"
	}
	return m
}

func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// answerError answers with the problem an error is, and logs it where it is the
// server's fault. It is the only place that does either.
func (h *handler) answerError(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errWire) || r.Context().Err() != nil && errors.Is(err, r.Context().Err()) {
		return // nobody is there to be answered
	}
	p := asProblem(err)
	if kind, _ := problemKind(p.code); kind.status >= 500 {
		h.Logger.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path,
			"status", kind.status, "request_id", w.Header().Get("X-Request-Id"), "error", err)
	}
	if a, ok := w.(*answer); ok && a.begun {
		return // too late to say anything but the truth that it ends here
	}
	if err := p.write(w); err != nil && !errors.Is(err, errWire) {
		h.Logger.ErrorContext(r.Context(), "answering a problem", "error", err)
	}
}

func (h *handler) recoverPanic(w *answer, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { //nolint:errorlint // a recovered value, which net/http compares just so
		panic(v)
	}
	begun := w.begun
	h.answerError(w, r, fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
	if begun {
		panic(http.ErrAbortHandler) // so that the client sees a cut, not an end
	}
}

// answer knows whether an answer has begun.
type answer struct {
	http.ResponseWriter
	begun bool
}

func (a *answer) WriteHeader(status int) {
	a.begun = a.begun || status >= 200
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// discard is where the mux's own answer goes that we only want to know about.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }

// detached returns a context for a change that a client's hang-up must neither
// undo nor leave half done.
func detached(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.Context()), commitTimeout)
}

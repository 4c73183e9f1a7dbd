package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/store"
)

const maxWait = 60 * time.Second

// getTask answers GET /v1/tasks/{id}, at once or when the task ends.
func (h *handler) getTask(w http.ResponseWriter, r *http.Request, scope string) error {
	query, err := readQuery(r, "wait", "render")
	if err != nil {
		return err
	}
	render, err := h.wantsHTML(query)
	if err != nil {
		return err
	}
	wait, err := readWait(query)
	if err != nil {
		return err
	}
	id, err := pathID(r)
	if err != nil {
		return err
	}
	task, err := h.waited(w, r, scope, onereply.TaskID(id), wait)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, "application/json", wholeTask(task, render))
}

func readWait(q url.Values) (time.Duration, error) {
	if !q.Has("wait") {
		return 0, nil
	}
	wait, err := time.ParseDuration(q.Get("wait"))
	if err != nil || wait < 0 || wait > maxWait {
		return 0, badParameter("wait", "must be a duration such as 20s, at most 60s")
	}
	return wait, nil
}

// waited returns the task when it has ended or the wait is over, whichever
// comes first. A shutdown ends waits too: the client gets the task as it stands.
func (h *handler) waited(w http.ResponseWriter, r *http.Request, scope string, id onereply.TaskID, wait time.Duration) (onereply.Task, error) {
	if wait == 0 {
		return h.Engine.Task(r.Context(), scope, id)
	}
	if err := setDeadline(http.NewResponseController(w).SetWriteDeadline, wait+answerTimeout); err != nil {
		return onereply.Task{}, wireError(err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	if h.Shutdown != nil {
		defer context.AfterFunc(h.Shutdown, cancel)()
	}
	task, err := h.Engine.Wait(ctx, scope, id)
	if errors.Is(err, onereply.ErrClosed) { // the engine has stopped: the task as it stands is all there is to say
		return h.Engine.Task(r.Context(), scope, id)
	}
	if err != nil && ctx.Err() != nil && r.Context().Err() == nil && errors.Is(err, ctx.Err()) {
		if task.ID == "" { // the wait was over before the first look
			return h.Engine.Task(r.Context(), scope, id)
		}
		return task, nil
	}
	return task, err
}

// listTasks answers GET /v1/tasks, newest first, without inputs, responses and
// attempts.
func (h *handler) listTasks(w http.ResponseWriter, r *http.Request, scope string) error {
	query, err := readQuery(r, "status", "kind", "limit", "after")
	if err != nil {
		return err
	}
	p, err := readPage(query)
	if err != nil {
		return err
	}
	status := onereply.Status(query.Get("status"))
	switch status {
	case onereply.StatusQueued, onereply.StatusRunning, onereply.StatusCompleted, onereply.StatusFailed, onereply.StatusCancelled:
	default:
		if query.Has("status") {
			return badParameter("status", "must be queued, running, completed, failed or cancelled")
		}
	}
	if query.Has("kind") && !isKindName(query.Get("kind")) {
		return badParameter("kind", "must be the name of a kind of task, such as reply")
	}
	found, err := h.Engine.Tasks(r.Context(), store.Query{
		Scope: scope, Status: status, Kind: query.Get("kind"), Limit: p.limit + 1, After: onereply.TaskID(p.after),
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, "application/json",
		paged(found, p.limit, func(t onereply.Task) string { return string(t.ID) }, listedTask))
}

func isKindName(s string) bool {
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// taskTimeline answers GET /v1/tasks/{id}/timeline.
func (h *handler) taskTimeline(w http.ResponseWriter, r *http.Request, scope string) error {
	if _, err := readQuery(r); err != nil {
		return err
	}
	id, err := pathID(r)
	if err != nil {
		return err
	}
	events, err := h.Engine.Timeline(r.Context(), scope, onereply.TaskID(id))
	if err != nil {
		return err
	}
	if len(events) == 0 {
		return onereply.ErrNotFound
	}
	return writeJSON(w, http.StatusOK, "application/json", paged(events, len(events), nil, showEvent))
}

// cancelTask answers POST /v1/tasks/{id}/cancel. It needs no key, because
// cancelling twice is cancelling once, and no body; a body must be {}.
func (h *handler) cancelTask(w http.ResponseWriter, r *http.Request, scope string) error {
	if r.ContentLength != 0 {
		raw, err := readJSON(w, r, smallBody)
		if err != nil {
			return err
		}
		if err := decodeJSON(raw, &struct{}{}); err != nil {
			return err
		}
	}
	id, err := pathID(r)
	if err != nil {
		return err
	}
	ctx, cancel := detached(r)
	defer cancel()
	task, err := h.Engine.Cancel(ctx, scope, onereply.TaskID(id))
	if err != nil {
		return h.withStatus(ctx, err, scope, onereply.TaskID(id))
	}
	return writeJSON(w, http.StatusOK, "application/json", wholeTask(task, nil))
}

// resumeTask answers POST /v1/tasks/{id}/resume.
func (h *handler) resumeTask(w http.ResponseWriter, r *http.Request, scope string) error {
	raw, err := readJSON(w, r, smallBody)
	if err != nil {
		return err
	}
	key, err := requireKey(r.Header)
	if err != nil {
		return err
	}
	var body struct {
		Deadline *time.Time `json:"deadline"`
	}
	sent, err := decodeBound(raw, &body)
	if err != nil {
		return err
	}
	id, err := pathID(r)
	if err != nil {
		return err
	}
	resumption := engine.Resumption{
		Scope: scope, Key: key, Task: onereply.TaskID(id),
		Fingerprint: onereply.Fingerprint("resume", append([]byte(id), sent...)),
	}
	if body.Deadline != nil {
		if err := checkDeadline(*body.Deadline, "/deadline"); err != nil {
			return err
		}
		resumption.Deadline = *body.Deadline
	}
	ctx, cancel := detached(r)
	defer cancel()
	res, err := h.Engine.Resume(ctx, resumption)
	if err != nil {
		return h.withStatus(ctx, err, scope, resumption.Task)
	}
	w.Header().Set("Location", taskPath(resumption.Task))
	status := http.StatusAccepted
	if !res.Created {
		w.Header().Set(ReplayedHeader, "true")
		status = http.StatusOK
	}
	return writeJSON(w, status, "application/json", wholeTask(res.Task, nil))
}

// withStatus adds to a refusal how the task stands, so that the client need not
// ask. A refusal of another sort stays as it is.
func (h *handler) withStatus(ctx context.Context, refusal error, scope string, id onereply.TaskID) error {
	if !errors.Is(refusal, onereply.ErrEnded) && !errors.Is(refusal, onereply.ErrNotFailed) && !errors.Is(refusal, onereply.ErrDeadlineExceeded) {
		return refusal
	}
	task, err := h.Engine.Task(ctx, scope, id)
	if err != nil {
		return refusal // what it is matters more than what could be said beside it
	}
	return asProblem(refusal).with("task_status", task.Status)
}

func taskPath(id onereply.TaskID) string { return "/v1/tasks/" + string(id) }

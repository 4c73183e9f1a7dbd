package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/client"
	"github.com/onereply/onereply/feature/chat"
	"github.com/onereply/onereply/internal/settings"
)

// tasksFlags are the flags of tasks and its actions.
type tasksFlags struct {
	set      *flag.FlagSet
	remote   *settings.Remote
	filter   client.Filter
	status   string
	deadline string
	json     bool
}

func newTasks(lookup settings.Lookup) *tasksFlags {
	t := &tasksFlags{set: newFlags("tasks")}
	t.set.StringVar(&t.status, "status", "", "list: only tasks with this `STATUS`: queued, running, completed, failed or cancelled")
	t.set.StringVar(&t.filter.Kind, "kind", "", "list: only tasks of this `KIND`, such as reply")
	t.set.IntVar(&t.filter.Limit, "limit", 0, "list: at most `N` tasks; 0 is the server's own limit")
	t.set.StringVar(&t.filter.After, "after", "", "list: go on after this `ID`")
	t.set.StringVar(&t.deadline, "deadline", "", "resume: a new deadline, as `TIME` like 2030-01-02T15:04:05Z")
	t.set.BoolVar(&t.json, "json", false, "print JSON instead of text")
	t.remote = settings.RegisterRemote(t.set, lookup)
	return t
}

// replyKind is the kind of task whose response is an answer.
const replyKind = chat.Kind

// tasks lists, shows, cancels and resumes tasks.
func tasks(ctx context.Context, p *process, args []string) error {
	t := newTasks(p.lookup)
	own, err := parseFlags(t.set, args)
	if err != nil {
		return err
	}
	if len(own) == 0 {
		return usagef("needs an action: list, show, cancel or resume")
	}
	action, own := own[0], own[1:]
	run, found := map[string]func(context.Context, *process, *client.Client, string) error{
		"list": t.list, "show": t.show, "cancel": t.cancel, "resume": t.resume,
	}[action]
	if !found {
		return usagef("there is no action %q; use list, show, cancel or resume", action)
	}
	if action == "list" {
		if len(own) > 0 {
			return usagef("list takes no argument; filter with --status and --kind")
		}
		own = []string{""}
	}
	if len(own) != 1 {
		return usagef("%s needs the id of one task", action)
	}
	c, err := dial(p, t.remote, quickPatience)
	if err != nil {
		return err
	}
	return explain(p, run(ctx, p, c, own[0]), t.remote)
}

func (t *tasksFlags) list(ctx context.Context, p *process, c *client.Client, _ string) error {
	t.filter.Status = onereply.Status(t.status)
	l, err := c.Tasks(ctx, t.filter)
	if err != nil {
		return err
	}
	if t.json {
		return printJSON(p.stdout, l)
	}
	if len(l.Data) == 0 {
		fmt.Fprintln(p.stderr, "no tasks")
		return nil
	}
	rows := [][]string{{"TASK", "STATUS", "KIND", "CREATED", "ATTEMPTS", "CALLS", "WHY"}}
	for _, task := range l.Data {
		rows = append(rows, []string{
			task.ID, string(task.Status), task.Kind, moment(task.CreatedAt), bound(task.Budget.Attempts), bound(task.Budget.Calls), why(task),
		})
	}
	table(p.stdout, rows)
	if l.Next != "" {
		fmt.Fprintf(p.stderr, "more: %s\n", hint(p, t.remote, "tasks list --after "+l.Next))
	}
	return nil
}

func (t *tasksFlags) show(ctx context.Context, p *process, c *client.Client, id string) error {
	task, err := c.Task(ctx, id)
	if err != nil {
		return err
	}
	events, err := c.Timeline(ctx, id)
	if err != nil {
		return err
	}
	if t.json {
		return printJSON(p.stdout, struct {
			Task     client.Task    `json:"task"`
			Timeline []client.Event `json:"timeline"`
		}{task, events})
	}
	showTask(p.stdout, task)
	showAttempts(p.stdout, task.Attempts)
	showTimeline(p.stdout, events)
	return nil
}

func (t *tasksFlags) cancel(ctx context.Context, p *process, c *client.Client, id string) error {
	task, err := c.Cancel(ctx, id)
	return t.changed(p, task, err)
}

func (t *tasksFlags) resume(ctx context.Context, p *process, c *client.Client, id string) error {
	var deadline time.Time
	if t.deadline != "" {
		var err error
		if deadline, err = time.Parse(time.RFC3339, t.deadline); err != nil {
			return usagef("--deadline %q is no time like 2030-01-02T15:04:05Z", t.deadline)
		}
	}
	task, err := c.Resume(ctx, id, c.NewKey(), deadline)
	if err := t.changed(p, task, err); err != nil || t.json || task.Kind != replyKind {
		return err
	}
	fmt.Fprintf(p.stderr, "follow it: %s\n", hint(p, t.remote, "ask --follow "+id))
	return nil
}

func (t *tasksFlags) changed(p *process, task client.Task, err error) error {
	switch {
	case err != nil:
		return err
	case t.json:
		return printJSON(p.stdout, task)
	}
	showTask(p.stdout, task)
	return nil
}

func showTask(w io.Writer, t client.Task) {
	rows := [][]string{
		{"task", t.ID},
		{"kind", t.Kind},
		{"status", string(t.Status)},
	}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	add("why", why(t))
	add("created", moment(t.CreatedAt))
	if !t.EndedAt.IsZero() {
		add("ended", moment(t.EndedAt)+" after "+span(t.CreatedAt, t.EndedAt))
	}
	add("due", moment(t.RunAt))
	add("worker", t.Worker)
	add("lease until", moment(t.LeaseUntil))
	add("deadline", moment(t.Deadline))
	add("budget", fmt.Sprintf("attempts %s, calls %s, elapsed at most %s", bound(t.Budget.Attempts), bound(t.Budget.Calls), t.Budget.ElapsedMax))
	add("tokens", total(t.Attempts))
	table(w, rows)
}

// total is what all calls of a task cost, whatever became of them.
func total(attempts []client.Attempt) string {
	var u onereply.Usage
	for _, a := range attempts {
		u.InputTokens += a.Usage.InputTokens
		u.OutputTokens += a.Usage.OutputTokens
	}
	return tokens(u)
}

func showAttempts(w io.Writer, attempts []client.Attempt) {
	if len(attempts) == 0 {
		return
	}
	rows := [][]string{{"VERSION", "STARTED", "TOOK", "OUTCOME", "CALLS", "TOKENS", "WORKER", "ERROR"}}
	for _, a := range attempts {
		outcome, took, failure := string(a.Outcome), "", ""
		if outcome == "" {
			outcome = "running"
		}
		if !a.EndedAt.IsZero() {
			took = span(a.StartedAt, a.EndedAt)
		}
		if a.Error != nil {
			failure = a.Error.Code
		}
		rows = append(rows, []string{
			strconv.FormatInt(a.Version, 10), moment(a.StartedAt), took, outcome, strconv.Itoa(a.Calls), tokens(a.Usage), a.Worker, failure,
		})
	}
	fmt.Fprint(w, "\nattempts\n")
	table(w, rows)
}

func showTimeline(w io.Writer, events []client.Event) {
	if len(events) == 0 {
		return
	}
	rows := [][]string{{"AFTER", "EVENT", "VERSION", "DETAIL"}}
	for _, e := range events {
		version := ""
		if e.Version > 0 {
			version = strconv.FormatInt(e.Version, 10)
		}
		rows = append(rows, []string{span(events[0].At, e.At), string(e.Type), version, detail(e)})
	}
	fmt.Fprintf(w, "\ntimeline from %s\n", moment(events[0].At))
	table(w, rows)
}

// detail joins what an event has to say.
func detail(e client.Event) string {
	var s string
	add := func(text string) {
		if text != "" && s != "" {
			s += ", "
		}
		s += text
	}
	if e.Count > 1 {
		add(strconv.Itoa(e.Count) + " times")
	}
	if e.Call > 0 {
		add("call " + strconv.Itoa(e.Call))
	}
	add(string(e.Why))
	add(e.Code)
	add(e.Detail)
	add(tokens(e.Usage))
	if e.Type == onereply.EventClaimed {
		add("by " + e.Worker)
	}
	return s
}

// why says in one phrase what ended or holds up a task.
func why(t client.Task) string {
	s := string(t.Reason)
	if t.Error != nil {
		if s != "" {
			s += ": "
		}
		s += t.Error.Code
		if t.Error.Message != "" {
			s += " (" + t.Error.Message + ")"
		}
	}
	return s
}

func bound(b client.Bound) string { return fmt.Sprintf("%d/%d", b.Used, b.Max) }

func tokens(u onereply.Usage) string {
	if u == (onereply.Usage{}) {
		return ""
	}
	return fmt.Sprintf("%d in, %d out", u.InputTokens, u.OutputTokens)
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

func span(from, to time.Time) string { return to.Sub(from).Round(time.Millisecond).String() }

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/onereply/onereply/client"
)

const text = `A lease is a time limit. The lease belongs to an assignment. Bread needs flour. A worker renews its lease while it works.`

func writeFile(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "notes.md")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestAskTasksAndARestart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.db")
	s := start(t, file)
	env := map[string]string{"ONEREPLY_SERVER": s.url}
	asked := execute(t, env, "ask", "What is a lease?", "--file", writeFile(t, text))
	if asked.code != exitDone || !strings.Contains(asked.stdout, "lease") || !strings.HasSuffix(asked.stdout, "\n") {
		t.Fatalf("ask: %+v", asked)
	}
	ids := regexp.MustCompile(`conversation (\S+)\ntask (\S+)\n`).FindStringSubmatch(asked.stderr)
	if ids == nil {
		t.Fatalf("progress is %q", asked.stderr)
	}
	conversation, task := ids[1], ids[2]

	if got := execute(t, env, "ask", "--follow", task); got.code != exitDone || got.stdout != asked.stdout {
		t.Errorf("coming back shows %q, want %q", got.stdout, asked.stdout)
	}
	if got := execute(t, env, "ask", "--final", "And bread?", "--conversation", conversation); got.code != exitDone || got.stdout == "" {
		t.Errorf("second question: %+v", got)
	}
	if got := execute(t, env, "tasks", "list", "--status", "completed"); got.code != exitDone || strings.Count(got.stdout, "\n") != 3 || !strings.Contains(got.stdout, task) {
		t.Errorf("list: %+v", got)
	}
	shown := execute(t, env, "tasks", "show", task)
	for _, want := range []string{"completed", "attempts 1/5, calls 1/3", "submitted", "claimed", "called", "accepted"} {
		if !strings.Contains(shown.stdout, want) {
			t.Errorf("show lacks %q:\n%s", want, shown.stdout)
		}
	}
	if got := execute(t, env, "tasks", "cancel", task); got.code != exitFailed || !strings.Contains(got.stderr, "task_ended") || !strings.Contains(got.stderr, "(it is completed)") {
		t.Errorf("cancel of a completed task: %+v", got)
	}
	if got := execute(t, env, "tasks", "resume", task); got.code != exitFailed || !strings.Contains(got.stderr, "task_ended") {
		t.Errorf("resume of a completed task: %+v", got)
	}
	if code := s.stop(); code != exitDone {
		t.Fatalf("serve ended with %d", code)
	}

	again := start(t, file)
	env["ONEREPLY_SERVER"] = again.url
	if got := execute(t, env, "ask", "--follow", task); got.code != exitDone || got.stdout != asked.stdout {
		t.Errorf("after a restart it shows %q, want %q", got.stdout, asked.stdout)
	}
	c, err := client.New(again.url, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	conv, err := c.Conversation(t.Context(), conversation)
	if err != nil || len(conv.Messages) != 4 {
		t.Errorf("after a restart the conversation is %+v, %v; want two questions and two answers", conv, err)
	}
}

func TestTasksPrintJSONForMachines(t *testing.T) {
	t.Parallel()
	s := start(t, filepath.Join(t.TempDir(), "x.db"))
	env := map[string]string{"ONEREPLY_SERVER": s.url}
	if got := execute(t, env, "ask", text); got.code != exitDone {
		t.Fatalf("ask: %+v", got)
	}
	var list client.List[client.Task]
	if err := json.Unmarshal([]byte(execute(t, env, "tasks", "list", "--json").stdout), &list); err != nil || len(list.Data) != 1 {
		t.Fatalf("list: %+v, %v", list, err)
	}
	var shown struct {
		Task     client.Task
		Timeline []client.Event
	}
	if err := json.Unmarshal([]byte(execute(t, env, "tasks", "show", "--json", list.Data[0].ID).stdout), &shown); err != nil {
		t.Fatal(err)
	}
	if shown.Task.ID != list.Data[0].ID || len(shown.Timeline) == 0 || len(shown.Task.Attempts) != 1 {
		t.Errorf("show: %+v", shown)
	}
}

func TestATaskThatIsNotThere(t *testing.T) {
	t.Parallel()
	s := start(t, filepath.Join(t.TempDir(), "x.db"))
	for _, args := range [][]string{{"tasks", "show", "x"}, {"tasks", "cancel", "x"}, {"ask", "--follow", "x"}, {"ask", "hi", "--conversation", "x"}} {
		got := execute(t, map[string]string{"ONEREPLY_SERVER": s.url}, args...)
		if got.code != exitFailed || !strings.Contains(got.stderr, "not_found") || strings.Count(got.stderr, "\n") != 1 ||
			strings.Contains(got.stderr, ".;") || strings.Contains(got.stderr, "come back") {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestFilesThatAreNoText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ content, want string }{
		"invalid UTF-8":   {"caf\xe9", "is not UTF-8 text"},
		"a NUL":           {"a\x00b", "is not UTF-8 text"},
		"nothing":         {"", "holds no text"},
		"only a mark":     {"\ufeff \n", "holds no text"},
		"more than fits":  {strings.Repeat("x", maxFile+1), "is larger than"},
		"not there":       {"", "no such file"},
		"a whole folder":  {"", "is a directory"},
		"text with a BOM": {"\ufeffhello", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := writeFile(t, c.content)
			switch name {
			case "not there":
				file += "x"
			case "a whole folder":
				file = filepath.Dir(file)
			}
			got, err := message("q", []string{file}, nil)
			switch {
			case c.want == "" && (err != nil || got != "q\n\nnotes.md:\n\nhello"):
				t.Errorf("message is %q, %v", got, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error is %v, want %q", err, c.want)
			}
		})
	}
}

func TestTheScreenEndsWithTheSavedAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		deltas []client.Delta
		answer string
		want   string
	}{
		{"the whole stream", []client.Delta{{Text: "one "}, {Text: "two"}}, "one two", "one two\n"},
		{"what the last batch held comes with the end", []client.Delta{{Text: "one "}}, "one two", "one two\n"},
		{"a reset that repeats what is shown adds the rest", []client.Delta{{Text: "one "}, {Reset: true, Text: "one two"}}, "one two", "one two\n"},
		{"a takeover starts over on a new line", []client.Delta{{Text: "one "}, {Reset: true, Text: ""}, {Text: "uno"}}, "uno", "one \nuno\n"},
		{"an answer that differs from the draft replaces it", []client.Delta{{Text: "one"}}, "two", "one\ntwo\n"},
		{"nothing was streamed", nil, "one", "one\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out, progress bytes.Buffer
			s := &screen{out: &out, err: &progress}
			for _, d := range c.deltas {
				if err := s.show(d); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.finish(c.answer); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.want {
				t.Errorf("screen shows %q, want %q", &out, c.want)
			}
		})
	}
}

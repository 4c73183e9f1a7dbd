package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/client"
	"github.com/onereply/onereply/internal/settings"
)

// maxFile bounds a file put into a message. The server has a limit of its own
// for the whole message; this one only keeps a mistaken path from being read.
const maxFile = 1 << 20

// exitInterrupted is what shells show for a command that Ctrl-C ended.
const exitInterrupted = 130

// askFlags are the flags of ask.
type askFlags struct {
	set          *flag.FlagSet
	remote       *settings.Remote
	files        []string
	conversation string
	follow       string
	final        bool
}

func newAsk(lookup settings.Lookup) *askFlags {
	a := &askFlags{set: newFlags("ask")}
	a.set.Func("file", "a UTF-8 text `FILE` to put below the question; may be repeated", func(name string) error {
		a.files = append(a.files, name)
		return nil
	})
	a.set.StringVar(&a.conversation, "conversation", "", "the `ID` of a conversation to go on with; without it a new one begins")
	a.set.StringVar(&a.follow, "follow", "", "the `ID` of a reply task to come back to, instead of asking anew")
	a.set.BoolVar(&a.final, "final", false, "print the saved answer only, when it is complete, for use in scripts")
	a.remote = settings.RegisterRemote(a.set, lookup)
	return a
}

// ask asks a question, or comes back to one, and streams the answer.
func ask(ctx context.Context, p *process, args []string) error {
	a := newAsk(p.lookup)
	own, err := parseFlags(a.set, args)
	if err != nil {
		return err
	}
	switch {
	case a.follow != "" && (len(own) > 0 || len(a.files) > 0 || a.conversation != ""):
		return usagef("--follow comes back to a question asked before and takes no other")
	case a.follow == "" && len(own) != 1:
		return usagef("needs one question in quotes, not %d arguments", len(own))
	case a.follow == "" && readsInput(own[0], a.files) > 1:
		return usagef("standard input can be read only once, as the question or as one --file")
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	task := a.follow
	if task == "" {
		if task, err = a.submit(ctx, p, own[0]); err != nil {
			return explain(p, err, a.remote)
		}
	}
	return a.answer(ctx, p, task)
}

// submit saves the question and returns its task.
func (a *askFlags) submit(ctx context.Context, p *process, question string) (string, error) {
	text, err := message(question, a.files, p.stdin)
	if err != nil {
		return "", err
	}
	c, err := dial(p, a.remote, quickPatience)
	if err != nil {
		return "", err
	}
	begun := a.conversation == ""
	if begun {
		conv, err := c.NewConversation(ctx, "")
		if err != nil {
			return "", err
		}
		a.conversation = conv.ID
	}
	sent, err := c.Send(ctx, a.conversation, c.NewKey(), text, nil)
	if refused := new(client.Problem); begun && errors.As(err, &refused) && !errors.Is(err, client.ErrGaveUp) {
		// Nothing was saved: the conversation made for it would stay empty.
		if gone := c.DeleteConversation(ctx, a.conversation); gone != nil {
			err = fmt.Errorf("%w; the empty conversation %s is left: %w", err, a.conversation, gone)
		}
	}
	if err != nil {
		return "", err
	}
	fmt.Fprintf(p.stderr, "conversation %s\ntask %s\n", a.conversation, sent.Task.ID)
	return sent.Task.ID, nil
}

// answer streams a task's answer until it has ended.
func (a *askFlags) answer(ctx context.Context, p *process, id string) error {
	c, err := dial(p, a.remote, cmp.Or(p.patience, longPatience))
	if err != nil {
		return err
	}
	s := &screen{out: p.stdout, err: p.stderr, quiet: a.final}
	task, err := c.Follow(ctx, id, "", s.show)
	if err == nil {
		return a.end(p, s, task)
	}
	comeBack := hint(p, a.remote, "ask --follow "+id)
	err = errors.Join(err, s.endLine())
	switch {
	case ctx.Err() != nil:
		fmt.Fprintf(p.stderr, "\nThe task goes on without you.\n  come back: %s\n  look:      %s\n  stop it:   %s\n",
			comeBack, hint(p, a.remote, "tasks show "+id), hint(p, a.remote, "tasks cancel "+id))
		return &exitError{exitInterrupted}
	case problemCode(err) == "not_found":
		return fmt.Errorf("no task %s: %w; see: %s", id, err, hint(p, a.remote, "tasks list"))
	case errors.Is(err, client.ErrGaveUp):
		return fmt.Errorf("%w; the task goes on without you, come back with: %s", explain(p, err, a.remote), comeBack)
	}
	return explain(p, err, a.remote)
}

// end prints what is left to say once the task has ended.
func (a *askFlags) end(p *process, s *screen, task client.Task) error {
	switch task.Status {
	case onereply.StatusCompleted:
		reply, err := task.Reply()
		if err != nil {
			return fmt.Errorf("the answer of task %s cannot be read: %w", task.ID, err)
		}
		if err := s.finish(reply.Text); err != nil {
			return err
		}
		if reply.Truncated {
			fmt.Fprintln(p.stderr, "the model's limit of tokens cut the answer short")
		}
		return nil
	case onereply.StatusCancelled:
		return errors.Join(fmt.Errorf("task %s was cancelled", task.ID), s.endLine())
	}
	return errors.Join(fmt.Errorf("task %s failed: %s; %s", task.ID, why(task), a.again(p, task)), s.endLine())
}

// again says what can be done about a failed task, which is not always to
// resume it.
func (a *askFlags) again(p *process, task client.Task) string {
	resume := hint(p, a.remote, "tasks resume "+task.ID)
	switch task.Reason {
	case onereply.ReasonPermanent:
		if task.Error != nil && curable(task.Error.Code) {
			return "once whoever runs the service has mended that, go on with: " + resume
		}
		return "the same question would fail again"
	case onereply.ReasonDeadlineExceeded:
		return "give it more time with: " + hint(p, a.remote, "tasks resume "+task.ID+" --deadline TIME")
	case onereply.ReasonOutcomeUnknown:
		return "the model may have answered and charged for it, and trying again may cost twice: " + resume
	}
	return "try again with: " + resume
}

// curable reports whether a permanent refusal was about the service's account or
// settings, not about the question.
func curable(code string) bool {
	return code == onereply.CodeInsufficientQuota || code == onereply.CodeUnauthenticated || code == onereply.CodeProviderRejected
}

// screen shows live text that may start over.
type screen struct {
	out, err io.Writer
	quiet    bool
	shown    string // since the last start
}

// show prints a piece of live text. A draft that begins as the one shown is
// gone on with; any other starts over on a new line.
func (s *screen) show(d client.Delta) error {
	if s.quiet {
		return nil
	}
	text := d.Text
	if d.Reset {
		rest, same := strings.CutPrefix(text, s.shown)
		if !same {
			if err := s.restart(); err != nil {
				return err
			}
			rest = text
		}
		text = rest
	}
	s.shown += text
	_, err := io.WriteString(s.out, text)
	return err
}

// endLine ends a line that was begun, so that what follows has one of its own.
func (s *screen) endLine() error {
	if s.shown == "" || strings.HasSuffix(s.shown, "\n") {
		return nil
	}
	s.shown += "\n"
	_, err := io.WriteString(s.out, "\n")
	return err
}

func (s *screen) restart() error {
	fmt.Fprint(s.err, "\n(the answer starts over)\n")
	s.shown = ""
	_, err := io.WriteString(s.out, "\n")
	return err
}

// finish makes sure that what stands last on the screen is the saved answer.
func (s *screen) finish(answer string) error {
	rest, same := strings.CutPrefix(answer, s.shown)
	if !same {
		if err := s.restart(); err != nil {
			return err
		}
		rest = answer
	}
	_, err := io.WriteString(s.out, rest+"\n")
	return err
}

// standardInput is the name that stands for it.
const standardInput = "-"

// readsInput counts how often standard input is asked for.
func readsInput(question string, files []string) (n int) {
	for _, name := range append([]string{question}, files...) {
		if name == standardInput {
			n++
		}
	}
	return n
}

// message joins a question and files into the text of one message.
func message(question string, files []string, stdin io.Reader) (string, error) {
	if question == standardInput {
		text, err := readText(stdin)
		if err != nil {
			return "", fmt.Errorf("the question on standard input %w", err)
		}
		question = strings.TrimSpace(text)
	}
	if strings.TrimSpace(question) == "" {
		return "", usagef("the question is empty")
	}
	if !utf8.ValidString(question) {
		return "", usagef("the question is not valid UTF-8")
	}
	var b strings.Builder
	b.WriteString(question)
	for _, name := range files {
		if name == standardInput {
			text, err := readText(stdin)
			if err != nil {
				return "", fmt.Errorf("--file %s: standard input %w", name, err)
			}
			fmt.Fprintf(&b, "\n\n%s", text)
			continue
		}
		text, err := readFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n\n%s:\n\n%s", filepath.Base(name), text)
	}
	return b.String(), nil
}

func readFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("--file: %w", err)
	}
	defer f.Close()
	text, err := readText(f)
	if err != nil {
		return "", fmt.Errorf("--file %s %w", name, err)
	}
	return text, nil
}

// readText reads a text to its end, or says why it is none.
func readText(r io.Reader) (string, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return "", fmt.Errorf("cannot be read: %w", err)
	}
	text := strings.TrimPrefix(string(raw), "\ufeff")
	switch {
	case len(raw) > maxFile:
		err = fmt.Errorf("is larger than %d bytes", maxFile)
	case strings.TrimSpace(text) == "":
		err = errors.New("holds no text")
	case strings.ContainsRune(text, 0), !utf8.ValidString(text):
		err = errors.New("is not UTF-8 text; other documents are not supported yet")
	}
	return text, err
}

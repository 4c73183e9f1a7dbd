package chat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/feature/chat"
	"github.com/onereply/onereply/provider"
)

func service(t *testing.T, c chat.Config) (*chat.Service, *desk) {
	t.Helper()
	if c.Store == nil {
		c.Store = &rows{}
	}
	c.Model = says(provider.Answer{Text: "a"})
	s, err := chat.New(c)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{}
	s.Bind(d)
	return s, d
}

func TestSendSubmitsWhatAReplayNeeds(t *testing.T) {
	t.Parallel()
	s, d := service(t, chat.Config{})
	deadline := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	documents := []chat.DocumentVersion{{"d2", 3}, {"d1", 1}}
	sent, err := s.Send(t.Context(), chat.SendRequest{
		Scope: "s", Key: "k", Conversation: "c", Text: " hi ", Documents: documents,
		OnUnknown: onereply.UnknownStop, Deadline: deadline, Bound: []byte(`{"text":" hi "}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := chat.Message{
		ID: sent.Message.ID, ConversationID: "c", Role: chat.User, Text: " hi ", Documents: documents, TaskID: "t1",
		CreatedAt: time.Date(2026, 12, 1, 9, 0, 0, 1_000_000, time.UTC), // in UTC and whole milliseconds, as rows keep it
	}
	if diff := cmp.Diff(want, sent.Message); diff != "" || !sent.Created || len(sent.Message.ID) != 36 {
		t.Errorf("sent %+v %s", sent, diff)
	}
	sub := d.got[0]
	if sub.Scope != "s" || sub.Key != "k" || sub.Action != "message" || sub.Kind != "reply" || sub.OnUnknown != onereply.UnknownStop || !sub.Deadline.Equal(deadline) {
		t.Errorf("submitted %+v", sub)
	}
	var in chat.Input
	if err := json.Unmarshal(sub.Input, &in); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(chat.Input{Conversation: "c", Message: sent.Message.ID, Text: " hi ", Documents: documents}, in); diff != "" {
		t.Error(diff)
	}
}

func TestAReplayOfSendGivesTheMessageAsItStands(t *testing.T) {
	t.Parallel()
	stored := chat.Message{ID: "first", ConversationID: "c", Role: chat.User, Text: "hi", TaskID: "t9"}
	s, d := service(t, chat.Config{Store: &rows{messages: map[string]chat.Message{"first": stored}}})
	task := onereply.Task{ID: "t1", Status: onereply.StatusFailed, Input: json.RawMessage(`{"conversation":"c","message":"first","text":"hi"}`)}
	d.answer = func(onereply.Submission) (onereply.Submitted, error) { return onereply.Submitted{Task: task}, nil }
	sent, err := s.Send(t.Context(), chat.SendRequest{Scope: "s", Key: "k", Conversation: "c", Text: "hi"})
	if diff := cmp.Diff(chat.Sent{Message: stored, Task: task}, sent); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestSendRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		r    chat.SendRequest
		want error

		member string
	}{
		{"no text", chat.SendRequest{}, onereply.ErrInvalid, "/text"},
		{"a text of white space", chat.SendRequest{Text: " \n\u3000"}, onereply.ErrInvalid, "/text"},
		{"a NUL", chat.SendRequest{Text: "a\x00b"}, onereply.ErrInvalid, "/text"},
		{"broken UTF-8", chat.SendRequest{Text: "a\xff"}, onereply.ErrInvalid, "/text"},
		{"a text that is one byte too long", chat.SendRequest{Text: strings.Repeat("é", 8) + "a"}, chat.ErrTooLarge, "/text"},
		{"an unknown policy", chat.SendRequest{Text: "a", OnUnknown: "guess"}, onereply.ErrInvalid, "/policy/on_unknown_outcome"},
		{"a document without an id", chat.SendRequest{Text: "a", Documents: []chat.DocumentVersion{{"", 1}}}, onereply.ErrInvalid, "/documents/0"},
		{"a document without a version", chat.SendRequest{Text: "a", Documents: []chat.DocumentVersion{{"c", 1}, {"d", 0}}}, onereply.ErrInvalid, "/documents/1"},
		{"a document's id with a NUL", chat.SendRequest{Text: "a", Documents: []chat.DocumentVersion{{"d\x00", 1}}}, onereply.ErrInvalid, "/documents/0"},
		{"too many documents", chat.SendRequest{Text: "a", Documents: make([]chat.DocumentVersion, 101)}, onereply.ErrInvalid, "/documents"},
		{"a conversation that is not there", chat.SendRequest{Text: "a", Conversation: "gone"}, onereply.ErrNotFound, ""},
		{"a conversation of another scope", chat.SendRequest{Text: "a", Scope: "other"}, onereply.ErrNotFound, ""},
		{"bound bytes that are no JSON", chat.SendRequest{Text: "a", Bound: []byte("{")}, onereply.ErrInvalid, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, d := service(t, chat.Config{MaxMessage: 16})
			c.r.Key = "k"
			if c.r.Scope == "" {
				c.r.Scope = "s"
			}
			if c.r.Conversation == "" {
				c.r.Conversation = "c"
			}
			_, err := s.Send(t.Context(), c.r)
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			var member *chat.MemberError
			if errors.As(err, &member); c.member != "" && (member == nil || member.Pointer != c.member) {
				t.Errorf("%v is not about %s", err, c.member)
			}
			if len(d.got) != 0 {
				t.Error("something was submitted")
			}
		})
	}
	s, _ := service(t, chat.Config{MaxMessage: 16})
	if _, err := s.Send(t.Context(), chat.SendRequest{Scope: "s", Key: "k", Conversation: "c", Text: strings.Repeat("é", 8)}); err != nil {
		t.Errorf("the longest text: %v", err)
	}
}

// TestAKeyIsBoundToThePathAndToWhatWasSent compares fingerprints pair by pair.
func TestAKeyIsBoundToThePathAndToWhatWasSent(t *testing.T) {
	t.Parallel()
	question := func(id string) chat.Message {
		return chat.Message{ID: id, ConversationID: "c", Role: chat.User, Text: "q"}
	}
	store := &rows{messages: map[string]chat.Message{"m1": question("m1"), "m2": question("m2")}}
	send := func(change func(*chat.SendRequest)) []byte {
		s, d := service(t, chat.Config{Store: anywhere{store}})
		r := chat.SendRequest{Scope: "s", Key: "k", Conversation: "c", Text: "hi", Documents: []chat.DocumentVersion{{"a", 1}, {"b", 2}}}
		change(&r)
		if _, err := s.Send(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		return d.got[0].Fingerprint
	}
	regenerate := func(message string, bound string) []byte {
		s, d := service(t, chat.Config{Store: store})
		if _, err := s.Regenerate(t.Context(), chat.RegenerateRequest{Scope: "s", Key: "k", Message: message, Bound: []byte(bound)}); err != nil {
			t.Fatal(err)
		}
		if d.got[0].Action != "regenerate" {
			t.Errorf("action %q", d.got[0].Action)
		}
		return d.got[0].Fingerprint
	}
	same := func(*chat.SendRequest) {}
	prints := map[string][]byte{
		"as it is":              send(same),
		"other text":            send(func(r *chat.SendRequest) { r.Text = "ho" }),
		"other conversation":    send(func(r *chat.SendRequest) { r.Conversation = "c2" }),
		"other document order":  send(func(r *chat.SendRequest) { r.Documents[0], r.Documents[1] = r.Documents[1], r.Documents[0] }),
		"other version":         send(func(r *chat.SendRequest) { r.Documents[0].Version = 9 }),
		"other policy":          send(func(r *chat.SendRequest) { r.OnUnknown = onereply.UnknownStop }),
		"other deadline":        send(func(r *chat.SendRequest) { r.Deadline = time.Unix(9, 0) }),
		"the client's bytes":    send(func(r *chat.SendRequest) { r.Bound = []byte(`{"text":"hi"}`) }),
		"other client's bytes":  send(func(r *chat.SendRequest) { r.Bound = []byte(`{"documents":[],"text":"hi"}`) }),
		"regenerate":            regenerate("m1", ""),
		"regenerate, other one": regenerate("m2", ""),
	}
	for a, x := range prints {
		for b, y := range prints {
			if a != b && bytes.Equal(x, y) {
				t.Errorf("%q and %q are bound alike", a, b)
			}
		}
	}
	if !bytes.Equal(prints["as it is"], send(same)) {
		t.Error("the same request is bound differently the second time")
	}
	if !bytes.Equal(prints["the client's bytes"], send(func(r *chat.SendRequest) { r.Text, r.Bound = "resolved differently", []byte(`{"text":"hi"}`) })) {
		t.Error("something other than the client's bytes was bound")
	}
	if !bytes.Equal(prints["regenerate"], regenerate("m1", "{}")) {
		t.Error("an empty body is not the same as none for regenerate")
	}
}

// anywhere has every conversation.
type anywhere struct{ *rows }

func (a anywhere) Conversation(_ context.Context, _, id string) (chat.Conversation, error) {
	return chat.Conversation{ID: id}, nil
}

func TestRegenerateRefuses(t *testing.T) {
	t.Parallel()
	s, d := service(t, chat.Config{Store: &rows{messages: map[string]chat.Message{"a1": {ID: "a1", Role: chat.Assistant, ReplyTo: "m1"}}}})
	for id, want := range map[string]error{"gone": onereply.ErrNotFound, "a1": onereply.ErrInvalid} {
		if _, err := s.Regenerate(t.Context(), chat.RegenerateRequest{Scope: "s", Key: "k", Message: id}); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", id, err, want)
		}
	}
	if len(d.got) != 0 {
		t.Error("something was submitted")
	}
}

func TestNewRefusesAConfigurationThatCannotWork(t *testing.T) {
	t.Parallel()
	m := says(provider.Answer{})
	for name, c := range map[string]chat.Config{
		"no store":                {Model: m},
		"no model":                {Store: &rows{}},
		"a negative limit":        {Store: &rows{}, Model: m, MaxMessage: -1},
		"a policy without sense":  {Store: &rows{}, Model: m, Policy: onereply.Policy{MaxCalls: -1}},
		"an unknown unknown rule": {Store: &rows{}, Model: m, Policy: onereply.Policy{OnUnknown: "guess"}},
	} {
		if _, err := chat.New(c); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

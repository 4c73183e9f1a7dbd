package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/onereply/onereply"
)

// How many conversations a page of the list has, and how many runes a title.
const (
	defaultLimit  = 50
	maxLimit      = 200
	maxTitle      = 200
	maxAutoTitle  = 80
	deleteRetries = 5
)

// NewConversation asks for a conversation.
type NewConversation struct {
	Scope string
	Key   string // optional; empty: every call makes one
	Title string // optional; empty: the first message's first line becomes it
	// Bound is the canonical form of the body the client sent, which the key is
	// bound to. Empty: the members above.
	Bound []byte
}

// CreateConversation makes a conversation and reports true, or returns the one
// that the key made before, as it was answered then, and reports false. Errors:
// onereply.ErrInvalid, ErrKeyReused, ErrUnavailable.
func (s *Service) CreateConversation(ctx context.Context, n NewConversation) (Conversation, bool, error) {
	if err := checkTitle(n.Title); err != nil {
		return Conversation{}, false, err
	}
	bound, err := bind(ActionConversation, map[string]any{}, n.Bound, map[string]any{"title": n.Title})
	if err != nil {
		return Conversation{}, false, err
	}
	id := s.ids.New()
	var c Conversation
	var created bool
	err = s.tasks.InTx(ctx, func(ctx context.Context, tx onereply.Tx) (err error) {
		now, err := s.store.Now(ctx, tx)
		if err != nil {
			return fmt.Errorf("reading the time for a conversation: %w", err)
		}
		c = Conversation{ID: id, Title: n.Title, CreatedAt: milliseconds(now)}
		c, created, err = s.keyed(ctx, tx, n, c, bound)
		if err != nil || !created {
			return err
		}
		return s.store.AddConversation(ctx, tx, n.Scope, c)
	})
	if err != nil {
		return Conversation{}, false, err
	}
	return c, created, nil
}

// keyed records c as the answer to the key, or gives the answer that is recorded
// there. Without a key there is nothing to look up.
func (s *Service) keyed(ctx context.Context, tx onereply.Tx, n NewConversation, c Conversation, bound []byte) (Conversation, bool, error) {
	if n.Key == "" {
		return c, true, nil
	}
	answer, err := json.Marshal(c)
	if err != nil {
		return c, false, fmt.Errorf("recording a new conversation: %w", err)
	}
	res, err := s.tasks.SubmitTx(ctx, tx, onereply.Submission{
		Scope: n.Scope, Action: ActionConversation, Key: n.Key, Fingerprint: bound, Answer: answer,
	})
	if err != nil || res.Created {
		return c, res.Created, err
	}
	var first Conversation
	if err := json.Unmarshal(res.Answer, &first); err != nil {
		return c, false, fmt.Errorf("reading the recorded answer of a conversation: %w", err)
	}
	return first, false, nil
}

// Conversation returns a conversation with its messages, oldest first. Errors:
// onereply.ErrNotFound, ErrUnavailable.
func (s *Service) Conversation(ctx context.Context, scope, id string) (Thread, error) {
	c, err := s.store.Conversation(ctx, scope, id)
	if err != nil {
		return Thread{}, err
	}
	messages, err := s.store.Messages(ctx, scope, id)
	if err != nil {
		return Thread{}, err
	}
	if messages == nil {
		messages = []Message{}
	}
	return Thread{Conversation: c, Messages: messages}, nil
}

// Conversations returns a page of the scope's conversations, newest first, and
// the id to give as after for the next page, empty when there is none. Limit is
// taken as 50 when it is not positive and as 200 when it is more.
func (s *Service) Conversations(ctx context.Context, scope string, limit int, after string) (page []Conversation, next string, err error) {
	if limit <= 0 {
		limit = defaultLimit
	}
	limit = min(limit, maxLimit)
	page, err = s.store.Conversations(ctx, scope, limit+1, after)
	if err != nil {
		return nil, "", err
	}
	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].ID
	}
	return page, next, nil
}

// DeleteConversation cancels the conversation's tasks that have not ended and
// deletes it, in one transaction. Afterwards it is not there, and an answer that
// comes late finds its task cancelled, so nothing brings it back. Errors:
// onereply.ErrNotFound, ErrUnavailable.
func (s *Service) DeleteConversation(ctx context.Context, scope, id string) error {
	// Tasks are locked before rows of our own. A task that is submitted between
	// the look and the lock makes us start over, with it in the list:
	//  1. we read the ids, 2. someone's Send commits, 3. we lock the conversation.
	for range deleteRetries {
		err := s.tasks.InTx(ctx, func(ctx context.Context, tx onereply.Tx) error {
			ids, err := s.store.Unanswered(ctx, tx, scope, id)
			if err != nil {
				return err
			}
			slices.Sort(ids)
			if len(ids) > 0 {
				if _, err := s.tasks.CancelTx(ctx, tx, scope, ids); err != nil {
					return fmt.Errorf("cancelling the tasks of conversation %s: %w", id, err)
				}
			}
			more, err := s.store.DeleteConversation(ctx, tx, scope, id, ids)
			if err == nil && len(more) > 0 {
				err = errMoved
			}
			return err
		})
		if !errors.Is(err, errMoved) {
			return err
		}
	}
	return fmt.Errorf("%w: conversation %s kept receiving messages while it was being deleted", onereply.ErrUnavailable, id)
}

// errMoved rolls a deletion back that met a task it had not cancelled.
var errMoved = errors.New("the conversation received a message")

func checkTitle(title string) error {
	switch {
	case !utf8.ValidString(title) || strings.ContainsFunc(title, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return fmt.Errorf("%w: title must be one line of text", onereply.ErrInvalid)
	case utf8.RuneCountInString(title) > maxTitle:
		return fmt.Errorf("%w: title must have at most %d characters", onereply.ErrInvalid, maxTitle)
	}
	return nil
}

// titleFrom makes a title of a first message: its first line that says anything.
func titleFrom(text string) string {
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = strings.Join(strings.Fields(line), " ")
		if line == "" {
			continue
		}
		if runes := []rune(line); len(runes) > maxAutoTitle {
			return string(runes[:maxAutoTitle-1]) + "…"
		}
		return line
	}
	return ""
}

// milliseconds is the precision that rows keep, so that what is answered at once
// and what is read later are the same.
func milliseconds(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

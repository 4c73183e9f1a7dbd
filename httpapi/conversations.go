package httpapi

import (
	"context"
	"net/http"

	"github.com/onereply/onereply/feature/chat"
	"github.com/onereply/onereply/internal/jsonstrict"
)

// Chat is what the API asks of *chat.Service. Errors are those of onereply:
// ErrInvalid, ErrNotFound, ErrKeyReused, ErrUnavailable.
type Chat interface {
	CreateConversation(ctx context.Context, n chat.NewConversation) (c chat.Conversation, created bool, err error)
	Conversations(ctx context.Context, scope string, limit int, after string) (page []chat.Conversation, next string, err error)
	Conversation(ctx context.Context, scope, id string) (chat.Thread, error)
	DeleteConversation(ctx context.Context, scope, id string) error
	Send(ctx context.Context, r chat.SendRequest) (chat.Sent, error)
	Regenerate(ctx context.Context, r chat.RegenerateRequest) (chat.Regenerated, error)
}

// createConversation answers POST /v1/conversations. A key is optional here,
// because an empty conversation costs nothing, and honoured.
func (h *handler) createConversation(w http.ResponseWriter, r *http.Request, scope string) error {
	raw, err := readJSON(w, r, smallBody)
	if err != nil {
		return err
	}
	key, _, err := optionalKey(r.Header)
	if err != nil {
		return err
	}
	var body struct {
		Title string `json:"title"`
	}
	sent, err := decodeBound(raw, &body)
	if err != nil {
		return err
	}
	ctx, cancel := detached(r)
	defer cancel()
	c, created, err := h.Chat.CreateConversation(ctx, chat.NewConversation{Scope: scope, Key: key, Title: body.Title, Bound: sent})
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/conversations/"+c.ID)
	if !created {
		w.Header().Set(ReplayedHeader, "true")
		return writeJSON(w, http.StatusOK, "application/json", c)
	}
	return writeJSON(w, http.StatusCreated, "application/json", c)
}

// listConversations answers GET /v1/conversations, newest first.
func (h *handler) listConversations(w http.ResponseWriter, r *http.Request, scope string) error {
	query, err := readQuery(r, "limit", "after")
	if err != nil {
		return err
	}
	p, err := readPage(query)
	if err != nil {
		return err
	}
	found, next, err := h.Chat.Conversations(r.Context(), scope, p.limit, p.after)
	if err != nil {
		return err
	}
	if found == nil {
		found = []chat.Conversation{}
	}
	return writeJSON(w, http.StatusOK, "application/json", list[chat.Conversation]{Data: found, Next: next})
}

// shownMessage is a message with its answer's Markdown as HTML.
type shownMessage struct {
	chat.Message
	HTML string `json:"html,omitempty"` // of an assistant message, where asked for
}

// getConversation answers GET /v1/conversations/{id}.
func (h *handler) getConversation(w http.ResponseWriter, r *http.Request, scope string) error {
	query, err := readQuery(r, "render")
	if err != nil {
		return err
	}
	render, err := h.wantsHTML(query)
	if err != nil {
		return err
	}
	id, err := pathID(r)
	if err != nil {
		return err
	}
	thread, err := h.Chat.Conversation(r.Context(), scope, id)
	if err != nil {
		return err
	}
	shown := struct {
		chat.Conversation
		Messages []shownMessage `json:"messages"`
	}{thread.Conversation, make([]shownMessage, len(thread.Messages))}
	for i, m := range thread.Messages {
		shown.Messages[i].Message = m
		if render != nil && m.Role == chat.Assistant {
			shown.Messages[i].HTML = render(m.Text)
		}
	}
	return writeJSON(w, http.StatusOK, "application/json", shown)
}

// deleteConversation answers DELETE /v1/conversations/{id}.
func (h *handler) deleteConversation(w http.ResponseWriter, r *http.Request, scope string) error {
	if _, err := readQuery(r); err != nil {
		return err
	}
	id, err := pathID(r)
	if err != nil {
		return err
	}
	ctx, cancel := detached(r)
	defer cancel()
	if err := h.Chat.DeleteConversation(ctx, scope, id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// decodeBound decodes the body and returns its canonical form, to which the key
// is bound: all that the client sent, nothing that the server would add.
func decodeBound(raw []byte, into any) ([]byte, error) {
	if err := decodeJSON(raw, into); err != nil {
		return nil, err
	}
	return jsonstrict.Canonical(raw)
}

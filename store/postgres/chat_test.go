package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/feature/chat"
	"github.com/onereply/onereply/provider/demo"
	"github.com/onereply/onereply/store/postgres"
	"github.com/onereply/onereply/store/tables"
)

// The chat's whole way over its tables in this database: send, answer,
// regenerate, history, delete; on a pgx pool and on database/sql.
func TestTheChatKeepsItsRowsInTheSchema(t *testing.T) {
	t.Parallel()
	for _, flavour := range []string{"pgx", "database-sql"} {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "", postgres.Options{})
			if flavour == "database-sql" {
				db := stdlib.OpenDBFromPool(s.pool)
				t.Cleanup(func() { s.must(db.Close()) })
				own, err := postgres.NewSQL(db, postgres.Options{Schema: s.schema})
				s.must(err)
				t.Cleanup(func() { s.must(own.Close()) })
				s.store = own
			}
			chatLife(s)
		})
	}
}

func chatLife(s *site) {
	ctx, stop := context.WithCancel(s.Context())
	rows, err := tables.NewChat(s.store.Tables())
	s.must(err)
	talk, err := chat.New(chat.Config{Store: rows, Model: demo.New(0)})
	s.must(err)
	e, err := engine.New(engine.Options{Store: s.store, Kinds: []onereply.Kind{talk.Kind()}})
	s.must(err)
	talk.Bind(e)
	running := make(chan error)
	go func() { running <- e.Run(ctx) }()
	defer func() { stop(); s.must(<-running) }()

	c, created, err := talk.CreateConversation(ctx, chat.NewConversation{Scope: "w"})
	if err != nil || !created {
		s.Fatal(created, err)
	}
	sent, err := talk.Send(ctx, chat.SendRequest{Scope: "w", Key: "k1", Conversation: c.ID, Text: "What is a lease? A lease is a time limit."})
	s.must(err)
	task, err := e.Wait(ctx, "w", sent.Task.ID)
	if err != nil || task.Status != onereply.StatusCompleted {
		s.Fatalf("%+v, %v", task, err)
	}
	again, err := talk.Regenerate(ctx, chat.RegenerateRequest{Scope: "w", Key: "k2", Message: sent.Message.ID})
	s.must(err)
	if _, err = e.Wait(ctx, "w", again.Task.ID); err != nil {
		s.Fatal(err)
	}
	thread, err := talk.Conversation(ctx, "w", c.ID)
	s.must(err)
	if len(thread.Messages) != 3 || *thread.Messages[1].Shown || !*thread.Messages[2].Shown || thread.Conversation.Title == "" {
		s.Errorf("%d messages in %+v, want a question and two answers, the newest shown", len(thread.Messages), thread)
	}
	if _, err := talk.Conversation(ctx, "another", c.ID); !errors.Is(err, onereply.ErrNotFound) {
		s.Errorf("from another scope: %v, want not found", err)
	}
	s.must(talk.DeleteConversation(ctx, "w", c.ID))
	var n int
	s.scan(&n, "SELECT (SELECT count(*) FROM "+s.schema+".conversations) + (SELECT count(*) FROM "+s.schema+".messages) + (SELECT count(*) FROM "+s.schema+".regenerations)")
	if n != 0 {
		s.Errorf("%d rows are left of a deleted conversation", n)
	}
}

package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// contextT shortens the signatures of functions given to InTx.
type contextT = context.Context

func transactionCases() []Case {
	return []Case{
		{"transaction commits the caller's rows and the task together", txTogether},
		{"transaction that fails leaves nothing", txRollback},
		{"transaction that fails leaves its neighbours in the shared commit alone", txNeighbours},
		{"transaction that panics is undone and panics at its caller", txPanic},
		{"transaction within a transaction is refused", txNested},
		{"transaction of a caller that has hung up does nothing", txHungUp},
		{"transaction whose acknowledgement is lost is there on reading", txLostAck},
	}
}

var errOwn = errors.New("the application's own error")

func (e *Env) rows() int {
	e.Helper()
	n, err := e.Rows(e.ctx)
	e.must(err)
	return n
}

func txTogether(e *Env) {
	s := e.submission("k")
	e.must(e.Store.InTx(e.ctx, func(ctx contextT, tx onereply.Tx) error {
		if _, err := e.Store.Submit(ctx, tx, []store.Submission{s}); err != nil {
			return err
		}
		return e.AddRow(ctx, tx, "message")
	}))
	same(e, "rows", e.rows(), 1)
	e.onlyTasks(s.ID)
	a := e.claim(s.ID)
	e.must(e.Store.InTx(e.ctx, func(ctx contextT, tx onereply.Tx) error {
		if err := e.AddRow(ctx, tx, "answer"); err != nil {
			return err
		}
		_, err := e.Store.Finish(ctx, tx, []store.Ending{accept(a.Guard, `{}`)})
		return err
	}))
	same(e, "rows", e.rows(), 2)
	same(e, "status", e.whole(s.ID).Status, onereply.StatusCompleted)
}

func txRollback(e *Env) {
	s := e.submission("k")
	submitAndFail := func(ctx contextT, tx onereply.Tx) error {
		if _, err := e.Store.Submit(ctx, tx, []store.Submission{s}); err != nil {
			return err
		}
		if err := e.AddRow(ctx, tx, "message"); err != nil {
			return err
		}
		return errOwn
	}
	if err := e.Store.InTx(e.ctx, submitAndFail); err != errOwn { //nolint:errorlint // as it is, not wrapped
		e.Errorf("InTx returned %v, want the function's error as it is", err)
	}
	same(e, "rows", e.rows(), 0)
	e.onlyTasks()
	same(e, "the key afterwards", e.submit(s).Verdict, store.Created)
	a := e.claim(s.ID)
	before := e.whole(s.ID)
	err := e.Store.InTx(e.ctx, func(ctx contextT, tx onereply.Tx) error {
		if _, err := e.Store.Finish(ctx, tx, []store.Ending{accept(a.Guard, `{}`)}); err != nil {
			return err
		}
		return errOwn
	})
	same(e, "error of a failing hook", err == errOwn, true) //nolint:errorlint // as it is, not wrapped
	same(e, "the task after a failing hook", e.whole(s.ID), before)
	e.done(accept(a.Guard, `{}`))
}

func txNeighbours(e *Env) {
	const n = 40
	errs := make([]error, n)
	together(n, func(i int) {
		errs[i] = e.Store.InTx(e.ctx, func(ctx contextT, tx onereply.Tx) error {
			if _, err := e.Store.Submit(ctx, tx, []store.Submission{e.submission(fmt.Sprint("k", i))}); err != nil {
				return err
			}
			if err := e.AddRow(ctx, tx, "message"); err != nil {
				return err
			}
			if i%2 == 1 {
				return errOwn
			}
			return nil
		})
	})
	for i, err := range errs {
		if want := i%2 == 1; (err == errOwn) != want || (err != nil) != want { //nolint:errorlint // as it is, not wrapped
			e.Errorf("transaction %d: %v", i, err)
		}
	}
	same(e, "rows", e.rows(), n/2)
	all, err := e.Store.Tasks(e.ctx, store.Query{Limit: 100})
	e.must(err)
	same(e, "tasks", len(all), n/2)
}

func txPanic(e *Env) {
	s := e.submission("k")
	var caught any
	func() {
		defer func() { caught = recover() }()
		err := e.Store.InTx(e.ctx, func(ctx contextT, tx onereply.Tx) error {
			if _, err := e.Store.Submit(ctx, tx, []store.Submission{s}); err != nil {
				return err
			}
			panic("a hook's mistake")
		})
		e.Errorf("InTx returned %v from a function that panicked", err)
	}()
	same(e, "panic", caught, any("a hook's mistake"))
	e.onlyTasks()
	same(e, "the store afterwards", e.submit(s).Verdict, store.Created)
}

func txNested(e *Env) {
	err := e.Store.InTx(e.ctx, func(ctx contextT, _ onereply.Tx) error {
		inner := e.Store.InTx(ctx, func(contextT, onereply.Tx) error { return nil })
		if !errors.Is(inner, onereply.ErrInvalid) {
			e.Errorf("InTx inside InTx: %v, want an error matching ErrInvalid", inner)
		}
		_, inner = e.Store.Claim(ctx, e.claimRequest())
		if !errors.Is(inner, onereply.ErrInvalid) {
			e.Errorf("Claim inside InTx: %v, want an error matching ErrInvalid", inner)
		}
		return nil
	})
	e.must(err)
}

func txHungUp(e *Env) {
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	ran := false
	err := e.Store.InTx(ctx, func(contextT, onereply.Tx) error { ran = true; return nil })
	if !errors.Is(err, context.Canceled) || ran {
		e.Errorf("InTx of an ended context: %v, ran %v", err, ran)
	}
	ctx, cancel = context.WithCancel(e.ctx)
	s := e.submission("k")
	err = e.Store.InTx(ctx, func(ctx contextT, tx onereply.Tx) error {
		if _, err := e.Store.Submit(ctx, tx, []store.Submission{s}); err != nil {
			return err
		}
		cancel()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		e.Errorf("InTx of a context that ended within: %v", err)
	}
	e.onlyTasks()
	same(e, "the store afterwards", e.submit(s).Verdict, store.Created)
}

func txLostAck(e *Env) {
	s := e.submission("k")
	e.LoseNextCommitAck()
	_, err := e.trySubmit(e.Store, s)
	if !errors.Is(err, onereply.ErrCommitUnknown) || !errors.Is(err, onereply.ErrUnavailable) {
		e.Errorf("submit: %v, want an error matching ErrCommitUnknown and ErrUnavailable", err)
	}
	again := s
	again.ID = onereply.TaskID(e.ids.New())
	v := e.submit(again)
	same(e, "verdict on reading by key", v.Verdict, store.Existing)
	same(e, "task on reading by key", v.Task.ID, s.ID)
	a := e.claim(s.ID)
	e.LoseNextCommitAck()
	if _, err := e.tryFinish(e.Store, accept(a.Guard, `{"text":"saved"}`)); !errors.Is(err, onereply.ErrCommitUnknown) {
		e.Errorf("accept: %v, want an error matching ErrCommitUnknown", err)
	}
	t := e.whole(s.ID)
	same(e, "status on reading", t.Status, onereply.StatusCompleted)
	same(e, "response on reading", string(t.Response), `{"text":"saved"}`)
	same(e, "attempt on reading", t.Attempt, a.Guard.Attempt)
	b := e.running()
	e.LoseNextCommitAck()
	if _, err := e.Store.Record(e.ctx, []store.Record{{Guard: b.Guard, Op: store.CountCall}}); !errors.Is(err, onereply.ErrCommitUnknown) {
		e.Errorf("count: %v, want an error matching ErrCommitUnknown", err)
	}
	same(e, "calls on reading", e.whole(b.Task.ID).Budget.Calls.Used, 1)
	c := e.created()
	e.LoseNextCommitAck()
	if _, err := e.Store.Claim(e.ctx, e.claimRequest()); !errors.Is(err, onereply.ErrCommitUnknown) {
		e.Errorf("claim: %v, want an error matching ErrCommitUnknown", err)
	}
	same(e, "version on reading", e.whole(c.ID).Version, int64(1))
}

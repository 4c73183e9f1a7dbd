package main

import (
	"context"
	"sync/atomic"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store"
)

// counting counts the calls that an engine makes of its store. The look for
// other processes' commits, which reads one integer of shared memory, is inside
// the store and not counted.
type counting struct {
	store.Store
	calls atomic.Int64
}

func (c *counting) InTx(ctx context.Context, f func(context.Context, onereply.Tx) error) error {
	c.calls.Add(1)
	return c.Store.InTx(ctx, f)
}

func (c *counting) Claim(ctx context.Context, q store.Claim) (store.Claimed, error) {
	c.calls.Add(1)
	return c.Store.Claim(ctx, q)
}

func (c *counting) Record(ctx context.Context, r []store.Record) ([]store.Verdict, error) {
	c.calls.Add(1)
	return c.Store.Record(ctx, r)
}

func (c *counting) Tasks(ctx context.Context, q store.Query) ([]onereply.Task, error) {
	c.calls.Add(1)
	return c.Store.Tasks(ctx, q)
}

func (c *counting) Drafts(ctx context.Context, p []store.Position) ([]store.Draft, error) {
	c.calls.Add(1)
	return c.Store.Drafts(ctx, p)
}

func (c *counting) Due(ctx context.Context, kinds []string) (store.Due, error) {
	c.calls.Add(1)
	return c.Store.Due(ctx, kinds)
}

func (c *counting) Purge(ctx context.Context, p store.Purge) (store.Purged, error) {
	c.calls.Add(1)
	return c.Store.Purge(ctx, p)
}

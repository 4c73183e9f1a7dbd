package providertest

import (
	"context"
	"fmt"
	"sync"

	"github.com/onereply/onereply"
)

// Call is a counted call outside an engine: it allows one send and keeps what it
// was told. The zero value is ready. It is safe for concurrent use.
type Call struct {
	mu         sync.Mutex
	sends      int
	refused    int
	operations []string
	seen       onereply.Observation
	usage      onereply.Usage
}

// Send allows the first send and refuses every other as an engine does.
func (c *Call) Send() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sends > 0 {
		c.refused++
		return fmt.Errorf("call: %w", onereply.ErrUncounted)
	}
	c.sends++
	return nil
}

// Checkpoint keeps the operation id.
func (c *Call) Checkpoint(_ context.Context, operation string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.operations = append(c.operations, operation)
	return nil
}

// Observe merges what was seen.
func (c *Call) Observe(o onereply.Observation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = c.seen.Merge(o)
}

// Used keeps the latest usage.
func (c *Call) Used(u onereply.Usage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.usage = u
}

// Seen returns all that was observed so far.
func (c *Call) Seen() onereply.Observation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}

// Sends returns how many sends were allowed (0 or 1) and how many refused.
func (c *Call) Sends() (allowed, refused int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sends, c.refused
}

// Usage returns the latest usage reported.
func (c *Call) Usage() onereply.Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.usage
}

// Operations returns the ids checkpointed, oldest first.
func (c *Call) Operations() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.operations...)
}

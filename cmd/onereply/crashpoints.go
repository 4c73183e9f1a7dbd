//go:build crashpoints && unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/internal/settings"
	"github.com/onereply/onereply/store"
)

// errCrashPoint rolls back the transaction in which a crash point asked for it.
var errCrashPoint = errors.New("a crash point undid this transaction")

// wrapStore makes the binary of the failure tests misbehave at exact moments.
// ONEREPLY_CRASHPOINT lists points separated by commas, each
//
//	OPERATION:MOMENT:ACTION[@N]
//
// Operations are those of the store: submit, claim, count, renew, draft, close,
// accept, fail, retry, release, cancel; and tx, any transaction that the engine
// or a feature opens, which in a process that only works is the end of an
// attempt. Moments: before its COMMIT, with the
// transaction open where the operation has one of ours (tx: before it begins);
// during, from another
// thread while the COMMIT is on its way; after, when it is durable and nobody
// has been told. Actions: kill and stop are SIGKILL and SIGSTOP to this process,
// fail undoes the transaction, lose commits and says that the answer was lost,
// and a duration waits. N is the occurrence that counts, the first by default.
func wrapStore(s store.Store) store.Store {
	text, _ := settings.Environment()("ONEREPLY_CRASHPOINT")
	points, err := parseCrashPoints(text)
	if err != nil {
		panic(fmt.Sprintf("ONEREPLY_CRASHPOINT %q: %v", text, err))
	}
	return &crashStore{Store: s, points: points}
}

type crashPoint struct {
	operation, moment, action string
	nth                       int

	mu   sync.Mutex
	seen int
}

func parseCrashPoints(text string) (points []*crashPoint, err error) {
	for spec := range strings.SplitSeq(text, ",") {
		if spec == "" {
			continue
		}
		p := &crashPoint{nth: 1}
		spec, nth, counted := strings.Cut(spec, "@")
		if counted {
			if p.nth, err = strconv.Atoi(nth); err != nil {
				return nil, err
			}
		}
		parts := strings.Split(spec, ":")
		if len(parts) != 3 || !slices.Contains([]string{"before", "during", "after"}, parts[1]) {
			return nil, errors.New("want OPERATION:MOMENT:ACTION")
		}
		p.operation, p.moment, p.action = parts[0], parts[1], parts[2]
		if p.action == "stop" && (p.moment == "during" || p.moment == "before" && !slices.Contains([]string{"tx", "claim", "count", "renew", "draft", "close"}, p.operation)) {
			return nil, errors.New("a process that is stopped inside a transaction would hold the file")
		}
		points = append(points, p)
	}
	return points, nil
}

// reached reports whether this occurrence is the one that counts.
func (p *crashPoint) reached(moment string, operations []string) bool {
	if p.moment != moment || !slices.Contains(operations, p.operation) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen++
	return p.seen == p.nth
}

func (s *crashStore) act(p *crashPoint) error {
	switch p.action {
	case "kill":
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGKILL); err != nil {
			return err
		}
		select {} // the signal is on its way
	case "stop":
		// Other goroutines of this process must not be caught inside a transaction.
		s.writing.Lock()
		defer s.writing.Unlock()
		// Kill may return before every thread has stopped.
		continued := make(chan os.Signal, 1)
		signal.Notify(continued, syscall.SIGCONT)
		defer signal.Stop(continued)
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGSTOP); err != nil {
			return err
		}
		<-continued
		return nil
	case "fail":
		return errCrashPoint
	case "lose":
		return &onereply.Error{Op: "commit", Err: fmt.Errorf("%w: %w: a crash point", onereply.ErrCommitUnknown, onereply.ErrUnavailable)}
	}
	d, err := time.ParseDuration(p.action)
	if err != nil {
		return err
	}
	<-time.After(d)
	return nil
}

// crashStore is a store with crash points.
type crashStore struct {
	store.Store
	points  []*crashPoint
	writing sync.RWMutex // held for reading by whoever writes
}

func (s *crashStore) reach(moment string, operations ...string) error {
	for _, p := range s.points {
		if !p.reached(moment, operations) {
			continue
		}
		if moment == "during" {
			go func() { _ = s.act(p) }() // it ends the process, so there is nobody to tell
			continue
		}
		if err := s.act(p); err != nil {
			return err
		}
	}
	return nil
}

type operationsKey struct{}

// note adds operations to those of the transaction that ctx belongs to.
func note(ctx context.Context, operations ...string) {
	if all, ok := ctx.Value(operationsKey{}).(*[]string); ok {
		*all = append(*all, operations...)
	}
}

// InTx runs f and reaches the points of what was done in it.
func (s *crashStore) InTx(ctx context.Context, f func(context.Context, onereply.Tx) error) error {
	if err := s.reach("before", "tx"); err != nil {
		return err
	}
	var operations []string
	s.writing.RLock()
	err := s.Store.InTx(context.WithValue(ctx, operationsKey{}, &operations), func(ctx context.Context, tx onereply.Tx) error {
		operations = nil
		if err := f(ctx, tx); err != nil {
			return err
		}
		return errors.Join(s.reach("before", operations...), s.reach("during", operations...))
	})
	s.writing.RUnlock()
	if err != nil {
		return err
	}
	return s.reach("after", operations...)
}

// Submit notes a submission that created a task.
func (s *crashStore) Submit(ctx context.Context, tx onereply.Tx, entries []store.Submission) ([]store.Submitted, error) {
	done, err := s.Store.Submit(ctx, tx, entries)
	for _, d := range done {
		if d.Verdict == store.Created && d.Task.ID != "" {
			note(ctx, "submit")
			break
		}
	}
	return done, err
}

// Finish notes the endings that were done.
func (s *crashStore) Finish(ctx context.Context, tx onereply.Tx, entries []store.Ending) ([]store.Verdict, error) {
	names := map[store.EndingOp]string{store.Accept: "accept", store.Fail: "fail", store.Retry: "retry", store.Release: "release"}
	verdicts, err := s.Store.Finish(ctx, tx, entries)
	for i, v := range verdicts {
		if v.Refused == nil {
			note(ctx, names[entries[i].Op])
		}
	}
	return verdicts, err
}

// Command notes the commands that were done.
func (s *crashStore) Command(ctx context.Context, tx onereply.Tx, entries []store.Command) ([]store.Commanded, error) {
	done, err := s.Store.Command(ctx, tx, entries)
	for i, d := range done {
		if d.Verdict == store.Done && entries[i].Op == store.Cancel {
			note(ctx, "cancel")
		}
	}
	return done, err
}

// Claim reaches the points before a claim, and after one that found work.
func (s *crashStore) Claim(ctx context.Context, c store.Claim) (store.Claimed, error) {
	if err := s.reach("before", "claim"); err != nil {
		return store.Claimed{}, err
	}
	s.writing.RLock()
	claimed, err := s.Store.Claim(ctx, c)
	s.writing.RUnlock()
	if err != nil || len(claimed.Assignments) == 0 {
		return claimed, err
	}
	return claimed, s.reach("after", "claim")
}

// Record reaches the points of what is recorded.
func (s *crashStore) Record(ctx context.Context, entries []store.Record) ([]store.Verdict, error) {
	names := map[store.RecordOp]string{store.Renew: "renew", store.CountCall: "count", store.CloseCall: "close", store.DraftText: "draft"}
	var operations []string
	for _, r := range entries {
		if name := names[r.Op]; name != "" && !slices.Contains(operations, name) {
			operations = append(operations, name)
		}
	}
	if err := s.reach("before", operations...); err != nil {
		return nil, err
	}
	s.writing.RLock()
	verdicts, err := s.Store.Record(ctx, entries)
	s.writing.RUnlock()
	if err != nil {
		return verdicts, err
	}
	return verdicts, s.reach("after", operations...)
}

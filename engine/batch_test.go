package engine

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func double(items []int) []result[int] {
	results := make([]result[int], len(items))
	for i, n := range items {
		results[i].value = 2 * n
	}
	return results
}

func TestEveryCallerOfABatchGetsItsOwnResult(t *testing.T) {
	t.Parallel()
	b := newBatch(7, double)
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			if got, err := b.do(t.Context(), i); err != nil || got != 2*i {
				t.Errorf("do(%d) = %d, %v", i, got, err)
			}
		})
	}
	wg.Wait()
	if b.leading || len(b.waiting) > 0 {
		t.Errorf("left behind: leading %v, %d waiting", b.leading, len(b.waiting))
	}
}

func TestCallersThatComeDuringAFlushShareTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		b := newBatch(100, func(items []int) []result[int] {
			sizes = append(sizes, len(items))
			<-time.After(time.Millisecond)
			return double(items)
		})
		go func() { _, _ = b.do(t.Context(), 0) }()
		synctest.Wait() // the first flush is under way
		for i := range 10 {
			go func() { _, _ = b.do(t.Context(), i) }()
		}
		<-time.After(10 * time.Millisecond)
		synctest.Wait()
		if len(sizes) != 2 || sizes[0] != 1 || sizes[1] != 10 {
			t.Errorf("batches of %v, want [1 10]", sizes)
		}
	})
}

func TestACallerThatHangsUpIsWithdrawnAndTheLeadPassesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen []int
		b := newBatch(1, func(items []int) []result[int] {
			seen = append(seen, items...)
			<-time.After(time.Second)
			return double(items)
		})
		go func() { _, _ = b.do(t.Context(), 1) }()
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := make(chan error, 1)
		go func() { _, err := b.do(ctx, 2); gone <- err }()
		synctest.Wait()
		last := make(chan int, 1)
		go func() { n, _ := b.do(t.Context(), 3); last <- n }()
		synctest.Wait()
		cause := errors.New("hung up")
		cancel(cause)
		if err := <-gone; !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
		if n := <-last; n != 6 {
			t.Errorf("the last caller got %d", n)
		}
		if len(seen) != 2 || seen[0] != 1 || seen[1] != 3 {
			t.Errorf("flushed %v, want [1 3]", seen)
		}
	})
}

func TestEntriesToBeKeptApartNeverShareABatch(t *testing.T) {
	t.Parallel()
	b := newBatch(100, func(items []int) []result[int] {
		seen := make(map[int]bool)
		for _, n := range items {
			if seen[n] {
				t.Errorf("%d twice in %v", n, items)
			}
			seen[n] = true
		}
		return double(items)
	})
	b.apart = func(n int) string { return string(rune('a' + n)) }
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() { _, _ = b.do(t.Context(), i%3) })
	}
	wg.Wait()
}

func TestAPanicInAFlushIsAnErrorAndTheBatchGoesOn(t *testing.T) {
	t.Parallel()
	b := newBatch(10, func(items []int) []result[int] {
		if items[0] == 13 {
			panic("boom")
		}
		return double(items)
	})
	if _, err := b.do(t.Context(), 13); err == nil {
		t.Error("no error")
	}
	if n, err := b.do(t.Context(), 4); n != 8 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
}

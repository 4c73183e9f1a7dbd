package simulator

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// log holds the records and wakes who waits for them.
type log struct {
	keep int

	mu      sync.Mutex
	number  int
	records []*Record
	counts  map[string]int
	keys    []string // of counts, oldest first
	changed chan struct{}
}

func newLog(keep int) log {
	return log{keep: keep, counts: map[string]int{}, changed: make(chan struct{})}
}

// wake tells every waiter; the lock is held.
func (l *log) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *log) open(r Request, header http.Header) *Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number++
	if l.counts[r.Key] == 0 {
		l.keys = append(l.keys, r.Key)
		if len(l.keys) > l.keep {
			delete(l.counts, l.keys[0])
			l.keys = l.keys[1:]
		}
	}
	l.counts[r.Key]++
	r.Number, r.Attempt = l.number, l.counts[r.Key]
	record := &Record{Request: r, Header: header.Clone(), Started: time.Now()}
	l.records = append(l.records, record)
	if len(l.records) > l.keep {
		l.records = l.records[1:]
	}
	l.wake()
	return record
}

func (l *log) request(r *Record) Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return r.Request
}

func (l *log) note(r *Record, said string, left bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Said, r.Left = said, left
}

func (l *log) end(r *Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Ended = time.Now()
	l.wake()
}

// Records returns copies of the records kept, oldest first.
func (s *Simulator) Records() []Record {
	records, _ := s.log.snapshot()
	return records
}

func (l *log) snapshot() ([]Record, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	records := make([]Record, len(l.records))
	for i, r := range l.records {
		records[i] = *r
		records[i].Header = r.Header.Clone()
	}
	return records, l.changed
}

// For returns the records of one key, oldest first.
func (s *Simulator) For(key string) []Record {
	return slices.DeleteFunc(s.Records(), func(r Record) bool { return r.Key != key })
}

// Requests returns how many requests came with the key.
func (s *Simulator) Requests(key string) int {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return s.log.counts[key]
}

// Total returns how many requests came at all.
func (s *Simulator) Total() int {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return s.log.number
}

// Wait returns when the records satisfy done, which sees them after every
// change, or with the context's error.
func (s *Simulator) Wait(ctx context.Context, done func([]Record) bool) error {
	for {
		records, changed := s.log.snapshot()
		if done(records) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/onereply/onereply/store/postgres"
)

func TestManyProcessesMayMigrateAtOnce(t *testing.T) {
	t.Parallel()
	p := pool(t, config(t, ""))
	schema := freshSchema()
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		s, err := postgres.New(p, postgres.Options{Schema: schema})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { errs[i] = errors.Join(s.Migrate(t.Context()), s.Check(t.Context())) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// watching tells of hints until the test ends.
func (s *site) watching(store *postgres.Store) (hints <-chan struct{}, ended <-chan error) {
	s.Helper()
	ctx, stop := context.WithCancel(s.Context())
	heard, done := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		done <- store.Watch(ctx, func() {
			select {
			case heard <- struct{}{}:
			default:
			}
		})
	}()
	s.Cleanup(stop)
	return heard, done
}

func (s *site) hinted(hints <-chan struct{}) {
	s.Helper()
	select {
	case <-hints:
	case <-time.After(20 * time.Second):
		s.Fatal("no hint")
	}
}

// A pool behind a pooler that keeps no sessions listens on a connection of its
// own, or not at all; commits of its own process are heard either way.
func TestWhereAStoreListensIsSettable(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", postgres.Options{})
	direct, err := postgres.New(s.pool, postgres.Options{Schema: s.schema, Listen: server.cluster.URL("postgres") + "&application_name=direct-" + s.schema})
	s.must(err)
	silent, err := postgres.New(s.pool, postgres.Options{Schema: s.schema, Listen: postgres.ListenOff})
	s.must(err)
	hints, ended := s.watching(direct)
	s.hinted(hints) // it listens now
	_, err = s.submit(s.submission("k"))
	s.must(err)
	s.hinted(hints)
	own, _ := s.watching(silent)
	_, err = silent.Claim(t.Context(), claimOne(s))
	s.must(err)
	s.hinted(own)
	s.must(silent.Close())
	// A listener whose connection dies says so; the engine then watches again.
	s.until("the listener is killed", "SELECT bool_or(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1", "direct-"+s.schema)
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the watch ended without an error although its connection died")
		}
	case <-time.After(20 * time.Second):
		t.Error("the watch did not notice that its connection died")
	}
	s.must(direct.Close())
}

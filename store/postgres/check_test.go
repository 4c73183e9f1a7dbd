package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store/postgres"
)

func TestCheckFindsWhatWouldBreakAPromise(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", postgres.Options{})
	s.must(s.store.Check(t.Context()))
	wants := func(what string, err error, words ...string) {
		t.Helper()
		var said *onereply.Error
		if !errors.As(err, &said) || said.Hint == "" {
			t.Errorf("%s: %v, want an error with a hint", what, err)
			return
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %q does not say %s", what, err, word)
			}
		}
	}
	lax, err := postgres.New(pool(t, config(t, "&synchronous_commit=off")), postgres.Options{Schema: s.schema})
	s.must(err)
	wants("commits that do not wait for the disk", lax.Check(t.Context()), "synchronous_commit")
	empty, err := postgres.New(s.pool, postgres.Options{Schema: freshSchema()})
	s.must(err)
	wants("no schema", empty.Check(t.Context()), "0001_engine", "migrate")
	s.exec("INSERT INTO " + s.schema + ".schema_migrations VALUES (99, '0099_future', now())")
	wants("a newer schema", s.store.Check(t.Context()), "0099_future", "later version")
	wants("a newer schema to migrate", s.store.Migrate(t.Context()), "0099_future")
}

func TestTheSchemaIsSettableAndOnlyPlainNamesAre(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Upper", "a b", "a;drop", `a"b`, "1a", strings.Repeat("a", 60)} {
		if _, err := postgres.New(nil, postgres.Options{Schema: name}); !errors.Is(err, onereply.ErrInvalid) {
			t.Errorf("schema %q: %v, want an error matching ErrInvalid", name, err)
		}
	}
	s := newSite(t, "", postgres.Options{})
	var n int
	s.scan(&n, "SELECT count(*) FROM pg_class WHERE relname IN ('tasks', 'messages', 'schema_migrations') AND relnamespace = $1::regnamespace", s.schema)
	if n != 3 {
		t.Errorf("%d of three tables in schema %s", n, s.schema)
	}
}

// What is printed for those who migrate by hand makes the schema that the
// program makes.
func TestTheSchemaPrintedIsTheSchemaMigrated(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", postgres.Options{})
	byHand := freshSchema()
	text, err := postgres.MigrationSQL(byHand)
	s.must(err)
	s.exec(text)
	other, err := postgres.New(s.pool, postgres.Options{Schema: byHand})
	s.must(err)
	s.must(other.Check(t.Context()))
	const shape = `SELECT string_agg(table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable, ',' ORDER BY table_name, column_name)
		FROM information_schema.columns WHERE table_schema = $1`
	var a, b string
	s.scan(&a, shape, s.schema)
	s.scan(&b, shape, byHand)
	if a != b || a == "" {
		t.Errorf("printed:\n%s\nmigrated:\n%s", b, a)
	}
}

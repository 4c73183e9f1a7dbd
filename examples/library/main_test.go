package main

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/store/sqlite"
)

func TestTheSamePressTwiceShoutsOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "library.db")
	for _, want := range []string{"completed \"HELLO\" (created now: true)\n", "completed \"HELLO\" (created now: false)\n"} {
		var out strings.Builder
		if err := run(t.Context(), &out, file, "k", "hello"); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("printed %q, want %q", &out, want)
		}
	}
	if err := run(t.Context(), io.Discard, file, "k", "something else"); !errors.Is(err, onereply.ErrKeyReused) {
		t.Errorf("other inputs under the key: %v, want ErrKeyReused", err)
	}
	db, err := sqlite.Open(t.Context(), file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var rows int
	if err := db.Reader().QueryRowContext(t.Context(), "SELECT count(*) FROM shouts WHERE text = 'HELLO'").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if rows != 1 {
		t.Errorf("%d rows, want one", rows)
	}
}

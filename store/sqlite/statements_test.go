package sqlite_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onereply/onereply/store/sqlite"
)

func TestEverySQLFileIsUsedAndPrepares(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "test.db"), sqlite.Options{})
	texts, err := sqlite.Statements()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("sql/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 || len(files) != len(texts) {
		t.Fatalf("%d files, %d statements", len(files), len(texts))
	}
	code := goSources(t)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sql")
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(raw), "-- ") {
			t.Errorf("%s does not begin with a comment that names its promise", file)
		}
		if strings.Contains(texts[name], ";") {
			t.Errorf("%s holds more than one statement", file)
		}
		if !strings.Contains(code, `"`+name+`"`) {
			t.Errorf("%s is used nowhere", file)
		}
		if err := s.Prepare(t.Context(), texts[name]); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func goSources(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(raw)
	}
	return all.String()
}

// guardedStatements write for an assignment. accept_first_valid is the one
// exception to the guard, and says its own.
var guardedStatements = []string{"renew", "count", "close", "checkpoint", "draft", "progress", "accept", "fail", "retry", "release", "guard"}

// guardParts are what each of them must name.
var guardParts = []string{"AND version = ?", "AND attempt = ?", "AND status = 'running'", "AND lease_until > ?"}

func TestEveryGuardedStatementNamesVersionAttemptStatusAndLease(t *testing.T) {
	t.Parallel()
	texts, err := sqlite.Statements()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range guardedStatements {
		for _, part := range guardParts {
			if !strings.Contains(texts[name], part) {
				t.Errorf("%s.sql lacks %q", name, part)
			}
		}
	}
}

// The statements that return a whole task are read by one function.
func TestEveryStatementOfAWholeTaskHasTheSameColumns(t *testing.T) {
	t.Parallel()
	texts, err := sqlite.Statements()
	if err != nil {
		t.Fatal(err)
	}
	columns := regexp.MustCompile(`(?s)id, kind, scope, status.*?acceptance\b`)
	space := regexp.MustCompile(`\s+`)
	want := space.ReplaceAllString(columns.FindString(texts["task"]), " ")
	if strings.Count(want, ",") != 23 {
		t.Fatalf("task.sql selects %q", want)
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if name == "submit_task" {
			continue // inserts, and does not return
		}
		if got := space.ReplaceAllString(columns.FindString(texts[name]), " "); got != "" && got != want {
			t.Errorf("%s.sql has other columns, or in another order:\n%s\nwant\n%s", name, got, want)
		}
	}
}

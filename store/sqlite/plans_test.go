package sqlite_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/onereply/onereply/store/sqlite"
)

// No statement of the engine reads a whole table: costs stay flat as ended
// tasks pile up. The exceptions read in the order of an index, up to a limit,
// or count.
func TestNoStatementScansATable(t *testing.T) {
	t.Parallel()
	may := map[string]string{
		"tasks_page":       "newest first by the primary key, up to the page's limit",
		"stats_status":     "counts index entries",
		"stats_waiting":    "counts index entries of running tasks",
		"migrations_read":  "a row a migration",
		"migrations_known": "a row a table",
	}
	s := open(t, filepath.Join(t.TempDir(), "test.db"), sqlite.Options{})
	texts, err := sqlite.Statements()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range texts {
		if strings.HasPrefix(name, "savepoint") || name == "migrations_table" {
			continue
		}
		plan, err := s.Plan(t.Context(), text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, step := range plan {
			if strings.HasPrefix(step, "SCAN") && !strings.Contains(step, "CONSTANT ROW") && may[name] == "" {
				t.Errorf("%s.sql: %s", name, step)
			}
		}
	}
}

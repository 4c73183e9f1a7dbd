package postgres_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onereply/onereply/store/postgres"
)

func TestEverySQLFileIsUsedAndPrepares(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", postgres.Options{})
	texts, err := postgres.Statements(s.schema)
	s.must(err)
	files, err := filepath.Glob("sql/*.sql")
	s.must(err)
	if len(files) == 0 || len(files) != len(texts) {
		t.Fatalf("%d files, %d statements", len(files), len(texts))
	}
	sources, err := filepath.Glob("*.go")
	s.must(err)
	var code strings.Builder
	for _, file := range sources {
		if !strings.HasSuffix(file, "_test.go") {
			raw, err := os.ReadFile(file)
			s.must(err)
			code.Write(raw)
		}
	}
	conn, err := s.other.Acquire(t.Context())
	s.must(err)
	defer conn.Release()
	for name, text := range texts {
		if !strings.HasPrefix(text, "-- ") {
			t.Errorf("%s.sql does not begin with a comment that names its promise", name)
		}
		if !strings.Contains(code.String(), `"`+name+`"`) {
			t.Errorf("%s.sql is used nowhere", name)
		}
		if _, err := conn.Conn().Prepare(t.Context(), name, text); err != nil {
			t.Errorf("%s.sql: %v", name, err)
		}
	}
}

// The statements that return a whole task are read by one function.
func TestEveryStatementOfAWholeTaskHasTheSameColumns(t *testing.T) {
	t.Parallel()
	texts, err := postgres.Statements("onereply")
	if err != nil {
		t.Fatal(err)
	}
	columns := regexp.MustCompile(`(?s)\w\.id, \w\.kind, \w\.scope, \w\.status.*?acceptance\b`)
	plain := regexp.MustCompile(`\b[tdc]\.|\s+`)
	want := plain.ReplaceAllString(columns.FindString(texts["task"]), "")
	if strings.Count(want, ",") != 23 {
		t.Fatalf("task.sql selects %q", want)
	}
	seen := 0
	for name, text := range texts {
		for _, found := range columns.FindAllString(text, -1) {
			seen++
			if got := plain.ReplaceAllString(found, ""); got != want {
				t.Errorf("%s.sql has other columns, or in another order:\n%s\nwant\n%s", name, got, want)
			}
		}
	}
	if seen < 20 {
		t.Errorf("%d lists of columns found", seen)
	}
}

// fill puts many tasks of every state into the tables and keeps the server from
// gathering statistics: plans must not depend on them.
func (s *site) fill(ended, future int) {
	s.Helper()
	tables := []string{"tasks", "submissions", "inputs", "responses", "attempts", "calls", "progress", "drafts", "events"}
	for _, table := range tables {
		s.exec("ALTER TABLE " + s.schema + "." + table + " SET (autovacuum_enabled = false)")
	}
	s.exec(strings.ReplaceAll(`
		INSERT INTO onereply.tasks (id, kind, scope, status, version, attempt, run_at, created_at, ended_at, lease_until, attempts_max, calls_max, elapsed_max, elapsed_from, on_unknown, acceptance)
		SELECT lpad(i::text, 12, '0'), 'reply', 'w', CASE WHEN i % 500 = 0 THEN 'running' WHEN i % 200 = 0 THEN 'queued' ELSE 'completed' END, 1, 'a' || i,
			now() - interval '1 hour', now() - interval '1 hour', CASE WHEN i % 500 = 0 OR i % 200 = 0 THEN NULL ELSE now() - interval '1 minute' END,
			CASE WHEN i % 500 = 0 THEN now() + interval '1 hour' END, 3, 3, interval '2 hours', now(), 'retry', 'current-assignment'
		FROM generate_series(1, $1) i`, "onereply.", s.schema+"."), ended)
	for _, text := range []string{
		`INSERT INTO onereply.submissions SELECT 'w', 'reply', 'k' || id, 'f', id, NULL, created_at, now() + interval '1 day' FROM onereply.tasks`,
		`INSERT INTO onereply.inputs SELECT id, 'reply', 'k' || id, '{}' FROM onereply.tasks`,
		`INSERT INTO onereply.responses SELECT id, 1, attempt, '{}', now() FROM onereply.tasks WHERE status = 'completed'`,
		`INSERT INTO onereply.attempts SELECT id, 1, attempt, 'w', now(), NULL, 'accepted' FROM onereply.tasks`,
		`INSERT INTO onereply.calls SELECT id, 1, 1, attempt, now(), now(), 'answered' FROM onereply.tasks`,
		`INSERT INTO onereply.progress SELECT id, 1, '', now() FROM onereply.tasks`,
		`INSERT INTO onereply.drafts SELECT id, 1, 1, 'x' FROM onereply.tasks`,
		`INSERT INTO onereply.events SELECT id, 'replayed', 0, '', '', now(), now(), 1 FROM onereply.tasks`,
	} {
		s.exec(strings.ReplaceAll(text, "onereply.", s.schema+"."))
	}
	s.exec(strings.ReplaceAll(`
		INSERT INTO onereply.tasks (id, kind, scope, status, run_at, created_at, attempts_max, calls_max, elapsed_max, elapsed_from, on_unknown, acceptance)
		SELECT 'f' || lpad(i::text, 12, '0'), 'reply', 'w', 'queued', now() + interval '1 day' + i * interval '1 ms', now(), 3, 3, interval '2 days', now(), 'retry', 'current-assignment'
		FROM generate_series(1, $1) i`, "onereply.", s.schema+"."), future)
}

// mayScan lists the statements that are not hot and read a table by design.
var mayScan = map[string]string{
	"tasks_page":      "newest first by the primary key, up to the page's limit",
	"stats_status":    "counts for an operator",
	"stats_waiting":   "counts for an operator",
	"migrations_read": "a row a migration",
}

// No hot statement reads a whole table, whatever the plan was made for: for any
// arguments or for these, with the tables filled or, which is the trap, still
// empty. A connection keeps a plan for as long as nobody analyzes the tables, and
// what reads an empty table fastest reads a full one.
func TestNoHotStatementScansATable(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", postgres.Options{})
	texts, err := postgres.Statements(s.schema)
	s.must(err)
	conn, err := s.other.Acquire(t.Context())
	s.must(err)
	defer conn.Release()
	scan := regexp.MustCompile(`Seq Scan on (tasks|submissions|inputs|responses|attempts|calls|progress|drafts|events)\b`)
	for _, rows := range []int{0, 20_000} {
		s.fill(rows, 0)
		for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
			_, err = conn.Exec(t.Context(), "SET plan_cache_mode = "+mode)
			s.must(err)
			for name, text := range texts {
				if strings.HasPrefix(name, "migrations_") || mayScan[name] != "" {
					continue
				}
				for _, said := range s.plan(conn.Conn(), name, text) {
					if found := scan.FindString(said); found != "" {
						t.Errorf("%s.sql with %d rows, %s: %s", name, rows, mode, strings.TrimSpace(said))
					}
				}
			}
		}
		s.must(conn.Conn().DeallocateAll(t.Context()))
	}
}

// plan explains a statement for arguments of the right types, arrays with 64
// elements each.
func (s *site) plan(conn *pgx.Conn, name, text string) []string {
	s.Helper()
	prepared, err := conn.Prepare(s.Context(), name, text)
	s.must(err)
	var args []string
	for _, oid := range prepared.ParamOIDs {
		known, found := conn.TypeMap().TypeForOID(oid)
		if !found {
			s.Fatalf("%s: parameter of type %d", name, oid)
		}
		element, array := strings.CutPrefix(known.Name, "_")
		value, found := map[string]string{
			"text": "'x'", "int4": "1", "int8": "1", "bool": "true", "interval": "interval '1 s'", "timestamptz": "now()", "bytea": "'x'::bytea",
		}[element]
		if !found {
			s.Fatalf("%s: parameter of type %s", name, known.Name)
		}
		if array {
			value = "array_fill(" + value + "::" + element + ", ARRAY[64])"
		}
		args = append(args, value)
	}
	call := ""
	if len(args) > 0 {
		call = "(" + strings.Join(args, ", ") + ")"
	}
	tx, err := conn.Begin(s.Context())
	s.must(err)
	defer func() { s.must(tx.Rollback(s.Context())) }()
	if strings.HasPrefix(name, "purge_") {
		_, err = tx.Exec(s.Context(), postgres.AlongIndexes)
		s.must(err)
	}
	return explain(s, conn, `EXPLAIN EXECUTE "`+name+`"`+call)
}

func explain(s *site, conn *pgx.Conn, text string, args ...any) []string {
	s.Helper()
	rows, err := conn.Query(s.Context(), text, args...)
	s.must(err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	s.must(err)
	return lines
}

// buffers runs a statement, undoes it, and returns how many pages it touched.
func (s *site) buffers(name string, args ...any) (pages int) {
	s.Helper()
	texts, err := postgres.Statements(s.schema)
	s.must(err)
	tx, err := s.other.Begin(s.Context())
	s.must(err)
	defer func() { s.must(tx.Rollback(s.Context())) }()
	var raw string
	s.must(tx.QueryRow(s.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+texts[name], args...).Scan(&raw))
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	s.must(json.Unmarshal([]byte(raw), &plans))
	s.Logf("%s touched %d pages", name, plans[0].Plan.Hit+plans[0].Plan.Read)
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

// The trap: a search that compares an indexed time with clock_timestamp() reads
// every future row. What counts is pages, not time.
func TestManyFutureTasksCostAPollNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", postgres.Options{})
	s.fill(1000, 300_000)
	kinds := []string{"index", "reply"}
	fresh := slices.Repeat([]string{"a"}, 10)
	lease := time.Minute
	if n := s.buffers("due", kinds); n > 60 {
		t.Errorf("Due touched %d pages", n)
	}
	if n := s.buffers("claim", fresh, "w", lease, kinds); n > 2000 {
		t.Errorf("a claim of 10 touched %d pages", n)
	}
	s.exec(fmt.Sprintf("UPDATE %s.tasks SET status = 'completed', ended_at = now() WHERE run_at <= now()", s.schema))
	if n := s.buffers("claim", fresh, "w", lease, kinds); n > 200 {
		t.Errorf("a claim that finds nothing touched %d pages", n)
	}
}

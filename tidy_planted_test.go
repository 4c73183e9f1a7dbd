package onereply_test

import (
	"strings"
	"testing"
	"testing/fstest"
)

// planted are small trees that each break one rule, and what the rule must say.
var planted = []struct {
	name string
	path string
	text string
	want string // empty: nothing is wrong
}{
	{"a contract that imports the engine", "store/x.go", "// Package store is.\npackage store\n\nimport _ \"" + module + "/engine\"\n", "imports lower levels only"},
	{"a feature that imports another", "feature/chat/x.go", "// Package chat is.\npackage chat\n\nimport _ \"" + module + "/feature/document\"\n", "imports lower levels only"},
	{"a feature that imports the engine", "feature/chat/x.go", "// Package chat is.\npackage chat\n\nimport _ \"" + module + "/engine\"\n", "imports lower levels only"},
	{"a root that does I/O", "x.go", "// Package onereply is.\npackage onereply\n\nimport _ \"net/http\"\n", "does no I/O"},
	{"a package nobody placed", "elsewhere/x.go", "// Package elsewhere is.\npackage elsewhere\n", "has no level"},
	{"a driver in the engine", "engine/x.go", "// Package engine is.\npackage engine\n\nimport _ \"modernc.org/sqlite\"\n", "third-party module"},
	{"an unlisted module in an adapter", "store/sqlite/x.go", "// Package sqlite is.\npackage sqlite\n\nimport _ \"github.com/lib/pq\"\n", "third-party module"},
	{"the listed module in its adapter", "store/sqlite/x.go", "// Package sqlite is.\npackage sqlite\n\nimport _ \"modernc.org/sqlite\"\n", ""},
	{"an adapter in a test of the engine", "engine/x_test.go", "package engine_test\n\nimport _ \"" + module + "/store/sqlite\"\n", ""},
	{"the command in a test", "engine/x_test.go", "package engine_test\n\nimport _ \"" + module + "/cmd/onereply\"\n", "imports lower levels only"},
	{"testing in the product", "engine/x.go", "// Package engine is.\npackage engine\n\nimport _ \"testing\"\n", "holds no test code"},
	{"testing in a suite", "store/storetest/x.go", "// Package storetest is.\npackage storetest\n\nimport _ \"testing\"\n", ""},
	{"the old logger", "engine/x.go", "// Package engine is.\npackage engine\n\nimport _ \"log\"\n", "log/slog"},
	{"an empty package name", "internal/util/x.go", "// Package util is.\npackage util\n", "says nothing"},
	{"an empty file name", "engine/helpers.go", "// Package engine is.\npackage engine\n", "says nothing"},
	{"a long file", "engine/x.go", "// Package engine is.\npackage engine\n" + strings.Repeat("\n", 400), "one subject"},
	{"a long function", "engine/x.go", "// Package engine is.\npackage engine\n\nfunc f() {\n" + strings.Repeat("\tf()\n", 60) + "}\n", "one glance"},
	{"a long table in a test", "engine/x_test.go", "package engine\n\nfunc f() {\n\t_ = []int{\n" + strings.Repeat("\t\t1,\n", 80) + "\t}\n}\n", ""},
	{"a wide interface", "engine/x.go", "// Package engine is.\npackage engine\n\ntype i interface {\n\ta()\n\tb()\n\tc()\n\td()\n\te()\n\tf()\n\tg()\n}\n", "two roles"},
	{"a package without a story", "engine/x.go", "package engine\n", "no doc comment"},
	{"an exported function without a comment", "engine/x.go", "// Package engine is.\npackage engine\n\nfunc F() {}\n", "exported F has no comment"},
	{"an exported method without a comment", "engine/x.go", "// Package engine is.\npackage engine\n\n// T is.\ntype T struct{}\n\nfunc (t *T) M() {}\n", "exported M has no comment"},
	{"an exported constant without a comment", "engine/x.go", "// Package engine is.\npackage engine\n\nconst C = 1\n", "exported C has no comment"},
	{"a group of constants with one comment", "engine/x.go", "// Package engine is.\npackage engine\n\n// The colours.\nconst (\n\tA = 1\n\tB = 2\n)\n", ""},
	{"the host's clock in a store", "store/sqlite/claim.go", "// Package sqlite is.\npackage sqlite\n\nimport \"time\"\n\nfunc f() time.Time { return time.Now() }\n", "the database's clock decides"},
	{"the one reading of the clock", "store/sqlite/clock.go", "// Package sqlite is.\npackage sqlite\n\nimport \"time\"\n\nfunc f() time.Time { return time.Now() }\n", ""},
	{"a sleep in a test", "engine/x_test.go", "package engine\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }\n", "wait for the condition"},
	{"a context out of nowhere", "engine/x.go", "// Package engine is.\npackage engine\n\nimport \"context\"\n\nfunc f() context.Context { return context.Background() }\n", "outside cmd and tests"},
	{"a look at the environment", "engine/x.go", "// Package engine is.\npackage engine\n\nimport \"os\"\n\nfunc f() string { return os.Getenv(\"X\") }\n", "one place reads the environment"},
	{"an init function", "engine/x.go", "// Package engine is.\npackage engine\n\nfunc init() {}\n", "behind the reader's back"},
	{"a variable without a value", "engine/x.go", "// Package engine is.\npackage engine\n\nvar n int\n", "can change"},
	{"a variable made by a call", "engine/x.go", "// Package engine is.\npackage engine\n\nvar n = f()\n\nfunc f() int { return 1 }\n", "can change"},
	{"a lookup table", "engine/x.go", "// Package engine is.\npackage engine\n\nvar n = map[string]int{\"a\": 1}\n", ""},
	{"a lookup table that someone changes", "engine/x.go", "// Package engine is.\npackage engine\n\nvar n = map[string]int{\"a\": 1}\n\nfunc f() { n[\"b\"] = 2 }\n", "changes package-level n"},
	{"a sentinel error", "engine/x.go", "// Package engine is.\npackage engine\n\nimport \"errors\"\n\nvar errX = errors.New(\"x\")\n", ""},
	{"an embedded file", "engine/x.go", "// Package engine is.\npackage engine\n\nimport _ \"embed\"\n\n//go:embed x.txt\nvar text string\n", ""},
	{"a select in Go", "engine/x.go", "// Package engine is.\npackage engine\n\nconst q = `select id from tasks`\n", "a statement in Go"},
	{"an update in Go", "engine/x.go", "// Package engine is.\npackage engine\n\nconst q = \"UPDATE tasks SET x = 1\"\n", "a statement in Go"},
	{"an insert in Go", "engine/x.go", "// Package engine is.\npackage engine\n\nconst q = \"insert or ignore into tasks values (1)\"\n", "a statement in Go"},
	{"a delete in Go", "engine/x.go", "// Package engine is.\npackage engine\n\nconst q = \"delete from tasks\"\n", "a statement in Go"},
	{"prose that selects", "engine/x.go", "// Package engine is.\npackage engine\n\nconst q = \"select a file\"\n", ""},
	{"a statement nobody uses", "store/tables/sql/lost.sql", "-- P1: lost.\nSELECT 1;\n", "names this file"},
	{"a statement without its promise", "store/tables/sql/lost.sql", "SELECT 1;\n", "must open with a comment"},
	{"two statements in a file", "store/tables/sql/lost.sql", "-- P1: two.\nSELECT 1;\nSELECT 2;\n", "holds 2 statements"},
	{"a statement in the wrong place", "engine/x.sql", "-- P1: here.\nSELECT 1;\n", "live in store/*/sql"},
	{"a guarded statement that forgets the lease", "store/sqlite/sql/accept.sql", "-- P5: accept.\nUPDATE tasks SET x = 1 WHERE version = 1 AND attempt = 2 AND status = 3;\n", "does not name lease_until"},
	{"a guarded statement that only comments on the lease", "store/sqlite/sql/accept.sql", "-- P5: lease_until.\nUPDATE tasks SET x = 1 WHERE version = 1 AND attempt = 2 AND status = 3;\n", "does not name lease_until"},
	{"a guarded statement that forgets the attempt", "store/sqlite/sql/renew.sql", "-- P5: renew.\nUPDATE tasks SET x = 1 WHERE version = 1 AND lease_until = 2 AND status = 3;\n", "does not name attempt"},
	{"a store without a guarded statement", "store/sqlite/sql/other.sql", "-- P5: other.\nSELECT 1;\n", "missing: every store keeps"},
}

func TestEachRuleFindsWhatIsPlanted(t *testing.T) {
	t.Parallel()
	for _, c := range planted {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			house, err := readTree(fstest.MapFS{c.path: {Data: []byte(c.text)}})
			if err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, f := range house.check() {
				said = append(said, f.String())
			}
			all := strings.Join(said, "\n")
			switch {
			case c.want == "" && all != "":
				t.Errorf("nothing is wrong, yet it says:\n%s", all)
			case !strings.Contains(all, c.want):
				t.Errorf("nothing says %q, only:\n%s", c.want, all)
			}
		})
	}
}

func TestNestedModulesAndDataAreNotJudged(t *testing.T) {
	t.Parallel()
	house, err := readTree(fstest.MapFS{
		"bench/go.mod":         {Data: []byte("module x\n")},
		"bench/util.go":        {Data: []byte("package util\n")},
		"engine/testdata/x.go": {Data: []byte("package util\n")},
		".cache/x.go":          {Data: []byte("package util\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(house.files) != 0 {
		t.Errorf("%d files were read", len(house.files))
	}
}

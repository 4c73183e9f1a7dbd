package onereply_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestTidy holds the house rules over the whole tree. Each rule is a function
// in one of the tidy_*_test.go files; tidy_planted_test.go shows that each of
// them finds what it is for. To raise a limit or allow an exception, add a line
// with its reason to the list beside the rule, never silently.
func TestTidy(t *testing.T) {
	t.Parallel()
	house, err := readTree(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if len(house.files) < 15 {
		t.Fatalf("only %d Go files found; the walk is broken", len(house.files))
	}
	for _, f := range house.check() {
		t.Error(f)
	}
}

const module = "github.com/onereply/onereply"

// rules are the house rules by name.
var rules = []struct {
	name  string
	check func(*tree) []fault
}{
	{"imports", checkImports},
	{"names", checkNames},
	{"sizes", checkSizes},
	{"interfaces", checkInterfaces},
	{"docs", checkDocs},
	{"calls", checkCalls},
	{"state", checkState},
	{"sql in go", checkSQLInGo},
	{"sql files", checkSQLFiles},
	{"guards", checkGuards},
}

// fault is one place where the tree breaks a rule.
type fault struct {
	rule, path string
	line       int
	text       string
}

func (f fault) String() string {
	return fmt.Sprintf("%s:%d: %s (rule %q)", f.path, f.line, f.text, f.rule)
}

// source is one Go file.
type source struct {
	path  string // slashes, from the module's root
	dir   string // of the package; "." is the root
	lines int
	tree  *ast.File
	fset  *token.FileSet
}

// test reports whether the file is part of a test rather than of the product:
// a _test.go file, or any file of a package that exists for tests.
func (s *source) test() bool { return strings.HasSuffix(s.path, "_test.go") || testPackage(s.dir) }

// testPackage reports whether a package exists for tests and never ships.
func testPackage(dir string) bool {
	return strings.HasSuffix(path.Base(dir), "test") || dir == "e2e" || strings.HasPrefix(dir, "e2e/") || dir == "sim"
}

// tool reports whether a package is a program or an example: it has no callers
// that could pass a context or a setting in.
func tool(dir string) bool {
	for _, p := range []string{"cmd/", "scripts/", "examples/", "bench"} {
		if strings.HasPrefix(dir, p) {
			return true
		}
	}
	return false
}

func (s *source) line(n ast.Node) int { return s.fset.Position(n.Pos()).Line }

func (s *source) fault(n ast.Node, format string, args ...any) fault {
	return fault{path: s.path, line: s.line(n), text: fmt.Sprintf(format, args...)}
}

// tree is what the rules look at.
type tree struct {
	files []*source
	sql   map[string]string // path → text
}

// check runs every rule.
func (t *tree) check() (faults []fault) {
	for _, r := range rules {
		for _, f := range r.check(t) {
			f.rule = r.name
			faults = append(faults, f)
		}
	}
	return faults
}

// packages returns the files by directory.
func (t *tree) packages() map[string][]*source {
	m := map[string][]*source{}
	for _, f := range t.files {
		m[f.dir] = append(m[f.dir], f)
	}
	return m
}

func readTree(root fs.FS) (*tree, error) {
	t := &tree{sql: map[string]string{}}
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return enter(root, p, d.Name())
		}
		switch path.Ext(p) {
		case ".go":
			return t.add(root, p)
		case ".sql":
			text, err := fs.ReadFile(root, p)
			t.sql[p] = string(text)
			return err
		}
		return nil
	})
	return t, err
}

// enter skips what is not the product's own source: hidden and data folders,
// and modules of their own.
func enter(root fs.FS, p, name string) error {
	if p == "." {
		return nil
	}
	if strings.HasPrefix(name, ".") || slices.Contains([]string{"testdata", "node_modules", "bin"}, name) {
		return fs.SkipDir
	}
	if _, err := fs.Stat(root, path.Join(p, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func (t *tree) add(root fs.FS, p string) error {
	text, err := fs.ReadFile(root, p)
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, p, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.files = append(t.files, &source{
		path: p, dir: path.Dir(p), lines: strings.Count(string(text), "\n"), tree: file, fset: fset,
	})
	return nil
}

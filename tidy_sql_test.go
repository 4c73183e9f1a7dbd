package onereply_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// statement matches text that begins like SQL that reads or writes rows.
var statement = regexp.MustCompile(`(?is)^\s*(--[^\n]*\n\s*)*(select\s+\S.*\s+from\s|select\s+\d|insert\s+(or\s+\w+\s+)?into\s|update\s+(or\s+\w+\s+)?\w+\s+set\s|delete\s+from\s|replace\s+into\s|with\s+(recursive\s+)?\w+\s*(\([^)]*\)\s*)?as\s|create\s+(unique\s+)?(table|index)\s)|^\s*(?-is:SELECT|INSERT INTO|DELETE FROM|UPDATE \w+ SET)\s+\S`)

// checkSQLInGo keeps SQL in files of its own, where a reader can open a
// statement and its promise together. Tests may plant a row's state.
func checkSQLInGo(t *tree) (faults []fault) {
	for _, f := range t.files {
		if f.test() || strings.HasPrefix(f.dir, "bench") {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			if text, err := strconv.Unquote(lit.Value); err == nil && statement.MatchString(text) {
				faults = append(faults, f.fault(lit, "a statement in Go: it belongs in a .sql file of its own, with the promise it keeps"))
			}
			return true
		})
	}
	return faults
}

// checkSQLFiles wants each file of store/*/sql to open with a comment, to hold
// one statement, and to be named by the package above it. Those of the
// features, in store/tables/sql/<feature>, likewise.
func checkSQLFiles(t *tree) (faults []fault) {
	for p, text := range t.sql {
		bad := func(format string, args ...any) {
			faults = append(faults, fault{path: p, line: 1, text: fmt.Sprintf(format, args...)})
		}
		dir := path.Dir(p)
		if path.Base(dir) == "migrations" {
			continue
		}
		owner, _, found := strings.Cut(dir+"/", "/sql/")
		if !found || !strings.HasPrefix(dir, "store/") && !strings.HasPrefix(dir, "examples/") {
			bad("statements live in store/*/sql")
			continue
		}
		if !strings.HasPrefix(text, "--") {
			bad("must open with a comment that names the promise the statement keeps")
		}
		if n := statements(text); n != 1 {
			bad("holds %d statements; each has a file of its own", n)
		}
		if !named(t, owner, p) {
			bad("nothing in %s names this file: use it or remove it", owner)
		}
	}
	return faults
}

// bare strips comments and the insides of quoted text.
func bare(sql string) string {
	sql = regexp.MustCompile(`--[^\n]*`).ReplaceAllString(sql, "")
	return regexp.MustCompile(`'[^']*'`).ReplaceAllString(sql, "''")
}

func statements(sql string) int {
	n := 0
	for part := range strings.SplitSeq(bare(sql), ";") {
		if strings.TrimSpace(part) != "" {
			n++
		}
	}
	return n
}

// named reports whether a string in the owner's package names the file, with or
// without its folder and its ending. A glob in go:embed is no string.
func named(t *tree, owner, file string) bool {
	_, within, _ := strings.Cut(file, "/sql/")
	stem := strings.TrimSuffix(within, ".sql")
	names := []string{stem, within, "sql/" + within, path.Base(stem), path.Base(within)}
	for _, f := range t.files {
		if f.dir != owner || strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		found := false
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, err := strconv.Unquote(lit.Value)
				found = found || err == nil && slices.Contains(names, text)
			}
			return !found
		})
		for _, group := range f.tree.Comments {
			for _, c := range group.List {
				found = found || strings.HasPrefix(c.Text, "//go:embed ") && slices.Contains(strings.Fields(c.Text), "sql/"+within)
			}
		}
		if found {
			return true
		}
	}
	return false
}

// guarded lists the statements that may come late, by file name: each must be
// there in every store that has statements, and name all four conditions.
var guarded = []string{"close", "accept", "fail", "retry", "release", "renew", "count", "checkpoint", "draft", "progress"}

// guardExceptions lists the guarded statements that lack a condition by design.
var guardExceptions = map[string]string{
	"accept_first_valid.sql": "under first-valid any recorded attempt may fill the empty slot of a task that has not ended",
}

// checkGuards is the tripwire of P5; `make mutants` is the proof.
func checkGuards(t *tree) (faults []fault) {
	stores := map[string]map[string]string{}
	for p, text := range t.sql {
		if path.Base(path.Dir(p)) != "sql" || !strings.HasPrefix(p, "store/") {
			continue
		}
		dir := path.Dir(p)
		if stores[dir] == nil {
			stores[dir] = map[string]string{}
		}
		stores[dir][path.Base(p)] = text
	}
	for dir, files := range stores {
		if path.Base(path.Dir(dir)) == "tables" {
			continue // the features' plain SQL is never late: it runs inside a guarded transaction
		}
		for _, name := range guarded {
			name += ".sql"
			text, found := files[name]
			if !found {
				faults = append(faults, fault{path: dir + "/" + name, line: 1, text: "missing: every store keeps this guarded statement under this name"})
				continue
			}
			if guardExceptions[name] != "" {
				continue
			}
			for _, word := range []string{"version", "attempt", "status", "lease_until"} {
				if !strings.Contains(bare(text), word) {
					faults = append(faults, fault{path: dir + "/" + name, line: 1, text: "does not name " + word + ": a late write must be refused by version, attempt, status and lease together (P5)"})
				}
			}
		}
	}
	return faults
}

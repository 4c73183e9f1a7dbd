package onereply_test

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// topLevel is that of programs: they may import anything and nothing imports them.
const topLevel = 6

// levels gives every package its place: a package imports lower levels only,
// never its own, so that nothing ever asks back. The first match counts.
var levels = []struct {
	pattern string // as path.Match takes it
	level   int
	reason  string
}{
	{".", 0, "the words and pure rules, which everything else may use"},
	{"internal/torture", 5, "joins adapters to try them"},
	{"internal/*", 0, "a leaf that needs nothing of the product"},
	{"store", 1, "a contract"},
	{"queue", 1, "a contract"},
	{"provider", 1, "a contract"},
	{"engine", 2, "knows contracts, never adapters"},
	{"feature/*", 2, "meets the engine only as the root's Kind and Submitter"},
	{"store/sqlite", 4, "an adapter that may carry the features' tables"},
	{"store/postgres", 4, "an adapter that may carry the features' tables"},
	{"store/*", 3, "above the contract"},
	{"queue/*", 3, "an adapter"},
	{"provider/*", 3, "an adapter"},
	{"extract/*", 3, "an adapter"},
	{"blob/*", 3, "an adapter"},
	{"observe/*", 3, "an adapter"},
	{"httpapi", 3, "a face"},
	{"httpapi/*test", 4, "a suite of a face"},
	{"web", 3, "a face"},
	{"render", 3, "an adapter"},
	{"client", 3, "a face"},
	{"onereplytest", 5, "joins adapters for users' tests"},
	{"sim", 5, "joins adapters for simulation"},
	{"cmd/*", 6, "joins everything"},
	{"examples/*", 6, "shows a user's program"},
	{"scripts/*", 6, "tools of this repository"},
	{"e2e", 6, "runs everything"},
	{"bench", 6, "measures everything"},
}

// modules lists the third-party modules a package of the product may import.
var modules = map[string][]string{
	"store/sqlite":       {"modernc.org/sqlite"},
	"store/postgres":     {"github.com/jackc/pgx/v5"},
	"provider/openai":    {"github.com/openai/openai-go/v3"},
	"provider/anthropic": {"github.com/anthropics/anthropic-sdk-go/v2"},
	"render":             {"github.com/yuin/goldmark", "github.com/microcosm-cc/bluemonday"}, // one makes HTML, the other makes it safe
}

// testModules may be imported by tests and suites everywhere.
var testModules = []string{
	"github.com/google/go-cmp", "pgregory.net/rapid", "go.uber.org/goleak", "github.com/chromedp/chromedp", "github.com/chromedp/cdproto",
	"modernc.org/sqlite", "github.com/openai/openai-go/v3", "golang.org/x/net/http2", "golang.org/x/net/html", // what the product meets, seen from outside
}

// keptOut lists standard packages that a package must not import, and why.
var keptOut = map[string]string{
	"net/http": "the root says what things mean and does no I/O", "database/sql": "the root says what things mean and does no I/O",
	"os": "the root says what things mean and does no I/O", "embed": "the root says what things mean and does no I/O",
}

func levelOf(dir string) (level int, reason string, known bool) {
	for _, l := range levels {
		if ok, err := path.Match(l.pattern, dir); err == nil && ok {
			return l.level, l.reason, true
		}
	}
	return 0, "", false
}

func checkImports(t *tree) (faults []fault) {
	for _, f := range t.files {
		level, reason, known := levelOf(f.dir)
		if !known {
			faults = append(faults, f.fault(f.tree, "package %s has no level; give it one in levels, with the reason", f.dir))
			continue
		}
		for _, spec := range f.tree.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue // the parser accepted it
			}
			if text := judgeImport(f, level, reason, name); text != "" {
				faults = append(faults, f.fault(spec, "%s", text))
			}
		}
	}
	return faults
}

// judgeImport says what is wrong with one import, or nothing.
func judgeImport(f *source, level int, reason, name string) string {
	inFile := strings.HasSuffix(f.path, "_test.go")
	switch {
	case name == module || strings.HasPrefix(name, module+"/"):
		dir := strings.TrimPrefix(strings.TrimPrefix(name, module), "/")
		if dir == "" {
			dir = "."
		}
		return judgeLevel(f, level, reason, dir, inFile)
	case !strings.Contains(strings.Split(name, "/")[0], "."):
		return judgeStandard(f, name, inFile)
	case level == topLevel:
		return ""
	}
	allowed := modules[f.dir]
	if f.test() {
		allowed = slices.Concat(allowed, testModules)
	}
	for _, m := range allowed {
		if name == m || strings.HasPrefix(name, m+"/") {
			return ""
		}
	}
	return f.dir + " must not import " + name + ": a third-party module enters through the one package listed for it in modules, so that it can be replaced there"
}

func judgeLevel(f *source, level int, reason, dir string, inFile bool) string {
	other, otherReason, known := levelOf(dir)
	switch {
	case !known, other < level:
		return "" // an unknown one is reported where it lies
	case inFile && (dir == f.dir || other < topLevel):
		return "" // tests may use the suites and the adapter under test
	}
	return f.dir + " (level " + strconv.Itoa(level) + ": " + reason + ") must not import " + dir + " (level " + strconv.Itoa(other) + ": " + otherReason +
		"): a package imports lower levels only; pass the value in from cmd/onereply/wire.go"
}

func judgeStandard(f *source, name string, inFile bool) string {
	switch {
	case f.dir == "." && !inFile && keptOut[name] != "":
		return "the root must not import " + name + ": " + keptOut[name]
	case (name == "testing" || strings.HasPrefix(name, "testing/")) && !f.test():
		return f.dir + " must not import " + name + ": the binary holds no test code"
	case name == "log" && !f.test(): // net/http's own error log needs one
		return "use log/slog: one place logs, in one form"
	case name == "math/rand":
		return "use math/rand/v2 for jitter, crypto/rand for ids"
	case name == "unsafe":
		return "nothing here needs unsafe"
	}
	return ""
}

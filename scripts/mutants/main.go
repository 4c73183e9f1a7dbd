// Command mutants takes the guards of the SQL and the engine out, one at a
// time, in a copy of the source, and shows that a test falls each time. A guard
// whose removal no test notices is not proven; the command then exits 1.
//
//	go run ./scripts/mutants            all of them
//	go run ./scripts/mutants -run lease those whose name matches
//	go run ./scripts/mutants -list      their names and promises
//
// mutations.go is the list. Start reading there.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/onereply/onereply/internal/pgcluster"
)

// testTimeout bounds one run of the tests: a mutant may make them wait for ever.
const testTimeout = 3 * time.Minute

func main() {
	pattern := flag.String("run", "", "only mutants whose name matches this `REGEXP`")
	list := flag.Bool("list", false, "list the mutants and stop")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *pattern, *list); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, pattern string, list bool) error {
	wanted, err := choose(pattern)
	if err != nil {
		return err
	}
	if _, err := pgcluster.Find(); err != nil && !list {
		fmt.Fprintf(out, "LEFT OUT: the guards of store/postgres: %v\n", err)
		wanted = withoutPostgres(wanted)
	}
	if list {
		for _, m := range wanted {
			fmt.Fprintf(out, "%-34s %-8s %s\n", m.name, m.promise, m.edits[0].file)
		}
		return nil
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := copySource(".", dir); err != nil {
		return fmt.Errorf("copying the source: %w", err)
	}
	if err := healthy(ctx, out, dir, wanted); err != nil {
		return err
	}
	var alive []string
	for _, m := range wanted {
		verdict, err := try(ctx, dir, m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Fprintf(out, "%-34s %-8s %s\n", m.name, m.promise, verdict)
		if !strings.HasPrefix(verdict, killed) {
			alive = append(alive, m.name)
		}
	}
	if len(alive) > 0 {
		return fmt.Errorf("%d of %d guards can be taken out and no test falls: %s", len(alive), len(wanted), strings.Join(alive, ", "))
	}
	fmt.Fprintf(out, "%d guards, each held by a test\n", len(wanted))
	return nil
}

func choose(pattern string) ([]mutation, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	wanted := slices.DeleteFunc(mutations(), func(m mutation) bool { return !re.MatchString(m.name) })
	if len(wanted) == 0 {
		return nil, fmt.Errorf("no mutant matches %q", pattern)
	}
	return wanted, nil
}

// healthy makes sure that the tests pass while every guard stands; else a fall
// would prove nothing.
func healthy(ctx context.Context, out io.Writer, dir string, wanted []mutation) error {
	var packages []string
	for _, m := range wanted {
		for _, p := range m.packages {
			if !slices.Contains(packages, p) {
				packages = append(packages, p)
			}
		}
	}
	fmt.Fprintf(out, "with all guards: %s\n", strings.Join(packages, " "))
	if text, err := goTest(ctx, dir, packages, ""); err != nil {
		return fmt.Errorf("the tests fail although nothing was taken out: %w\n%s", err, text)
	}
	return nil
}

// textual tests look at the words of a statement or at this list, not at what a
// statement does; that they fall proves nothing.
const textual = "^(TestEvery.*|TestTheSuiteNoticesEveryGuardTakenOut|TestNoStatementScansATable)$"

const killed = "held by "

// try makes one mutant, runs the tests, and puts the source back.
func try(ctx context.Context, dir string, m mutation) (verdict string, err error) {
	for _, e := range m.edits {
		path := filepath.Join(dir, filepath.FromSlash(e.file))
		original, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		changed, err := e.apply(string(original))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, os.WriteFile(path, original, 0o600)) }()
	}
	text, err := goTest(ctx, dir, m.packages, m.run)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return judge(text, err), nil
}

var failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// judge says what a run of the tests showed: which test fell, that none did, or
// that the mutant is no program.
func judge(text string, err error) string {
	switch {
	case err == nil:
		return "NOT NOTICED"
	case strings.Contains(text, "[build failed]") || strings.Contains(text, "[setup failed]"):
		return "DOES NOT BUILD"
	}
	// The deepest failing name says most.
	deepest := ""
	for _, match := range failedTest.FindAllStringSubmatch(text, -1) {
		if strings.Count(match[1], "/") > strings.Count(deepest, "/") || deepest == "" {
			deepest = match[1]
		}
	}
	if deepest == "" {
		if strings.Contains(text, "panic: test timed out") {
			return killed + "a test that never ended"
		}
		if found := regexp.MustCompile(`(?m)^panic: .*`).FindString(text); found != "" {
			return killed + found
		}
		return "FAILED WITHOUT A TEST'S NAME"
	}
	return killed + deepest
}

func goTest(ctx context.Context, dir string, packages []string, run string) (string, error) {
	args := append([]string{"test", "-count=1", "-failfast", "-timeout", testTimeout.String(), "-skip", textual}, packages...)
	if run != "" {
		args = append(args, "-run", run)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.WaitDelay = 10 * time.Second
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err := cmd.Run()
	return text.String(), err
}

// copySource copies the module without what the tests do not need.
func copySource(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		target := filepath.Join(to, path)
		if d.IsDir() {
			if path != "." && (strings.HasPrefix(name, ".") || name == "bin" || name == "node_modules") {
				return fs.SkipDir
			}
			return os.MkdirAll(target, 0o700)
		}
		if !d.Type().IsRegular() || strings.Contains(name, ".db") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o600)
	})
}

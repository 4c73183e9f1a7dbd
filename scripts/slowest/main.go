// Command slowest reads the output of `go test -json` and prints it as `go
// test` would: the text of what failed, a line for each package, and at the end
// the tests that took longest and what was skipped. It exits 1 when anything
// failed or nothing ran.
//
//	go test -json ./... | go run ./scripts/slowest
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strings"
)

func main() {
	count := flag.Int("n", 15, "how many of the slowest tests to list")
	flag.Parse()
	ok, err := summarise(os.Stdin, os.Stdout, *count)
	if err != nil {
		fmt.Fprintln(os.Stderr, "slowest:", err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(1)
	}
}

// event is one line of `go test -json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds
}

// result is one test that has ended.
type result struct {
	name    string
	seconds float64
}

// summary is what has been seen so far.
type summary struct {
	output   map[string][]string // by package and test, until it has ended
	passed   []result
	skipped  []string
	packages int
	failed   int
}

// summarise copies what matters of in to out and reports whether all passed.
// Lines that are not JSON, such as a build's errors, are copied as they are.
func summarise(in io.Reader, out io.Writer, count int) (bool, error) {
	s := &summary{output: map[string][]string{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			s.take(out, line)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return false, err
		}
	}
	s.close(out, count)
	return s.failed == 0 && s.packages > 0, nil
}

func (s *summary) take(out io.Writer, line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		fmt.Fprint(out, line)
		return
	}
	id := e.Package + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		if e.Test == "" && (e.Action == "build-output" || packageLine(e.Output)) {
			fmt.Fprint(out, e.Output)
			return
		}
		s.output[id] = append(s.output[id], e.Output)
	case "build-fail":
		s.failed++
	case "pass", "fail", "skip":
		s.ended(out, e, id)
	}
}

// packageLine tells the closing line of a package from a test's own output.
func packageLine(text string) bool {
	for _, prefix := range []string{"ok  \t", "FAIL\t", "---", "?   \t", "panic:"} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

func (s *summary) ended(out io.Writer, e event, id string) {
	text := s.output[id]
	delete(s.output, id)
	switch {
	case e.Action == "fail":
		s.failed++
		fmt.Fprint(out, strings.Join(text, ""))
	case e.Action == "skip" && e.Test != "":
		s.skipped = append(s.skipped, id)
		fmt.Fprint(out, strings.Join(text, ""))
	}
	if e.Test == "" {
		s.packages++
		return
	}
	// A test that only holds others takes their time; list the leaves.
	parent, _, nested := cutLast(e.Test, "/")
	if nested {
		s.passed = slices.DeleteFunc(s.passed, func(r result) bool { return r.name == e.Package+" "+parent })
	}
	s.passed = append(s.passed, result{id, e.Elapsed})
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func (s *summary) close(out io.Writer, count int) {
	sort.SliceStable(s.passed, func(i, j int) bool { return s.passed[i].seconds > s.passed[j].seconds })
	fmt.Fprintf(out, "\nslowest tests\n")
	for _, r := range s.passed[:min(count, len(s.passed))] {
		fmt.Fprintf(out, "  %7.2fs  %s\n", r.seconds, r.name)
	}
	if len(s.skipped) > 0 {
		fmt.Fprintf(out, "skipped: %d\n", len(s.skipped))
		for _, name := range s.skipped {
			fmt.Fprintf(out, "  %s\n", name)
		}
	}
	fmt.Fprintf(out, "%d packages, %d tests, %d failures\n", s.packages, len(s.passed), s.failed)
}

package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onereply/onereply/internal/settings"
)

const top = "../.."

// pages reads the Markdown of the repository by its path from the top.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != top && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 15 {
		t.Fatalf("only %d pages found; the walk is broken", len(found))
	}
	return found
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	aFlag   = regexp.MustCompile("(?m)(?:^|[\\s`(|])--([a-z][a-z-]+)")
	aCall   = regexp.MustCompile("(?m)(?:^|[`(]|run )(?:\\./|\\./cmd/)?onereply ([a-z]+)")
	aTarget = regexp.MustCompile("(?m)(?:^|`)make ([a-z]+)")
	variabl = regexp.MustCompile(`ONEREPLY_[A-Z_]+`)
)

func TestLinksInThePagesResolve(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for path, text := range all {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target, fragment, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), filepath.FromSlash(target))
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s: %v", path, match[1], err)
				continue
			}
			if fragment != "" && !slices.Contains(anchors(all[file]), fragment) {
				t.Errorf("%s links to %s, which has no such heading", path, match[1])
			}
		}
	}
}

// anchors gives the fragments that a page's headings make.
func anchors(text string) (all []string) {
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		a := strings.ToLower(match[1])
		a = regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(a, "")
		all = append(all, strings.ReplaceAll(a, " ", "-"))
	}
	return all
}

// known is what the command line has.
func known() (flags, variables []string) {
	for _, f := range settings.Flags() {
		variables = append(variables, f.Variable())
		if !f.NoFlag {
			flags = append(flags, f.Name)
		}
	}
	var b bytes.Buffer
	for _, c := range commands() {
		c.help(&b)
	}
	for _, match := range aFlag.FindAllStringSubmatch(b.String(), -1) {
		flags = append(flags, match[1])
	}
	variables = append(variables, variabl.FindAllString(b.String(), -1)...)
	// Read by tests and by the binary of the failure tests only.
	variables = append(variables, "ONEREPLY_TEST_REQUIRE", "ONEREPLY_CRASHPOINT")
	return append(flags, "help"), variables
}

func TestFlagsVariablesAndCommandsInThePagesExist(t *testing.T) {
	t.Parallel()
	flags, variables := known()
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	makefile, err := os.ReadFile(filepath.Join(top, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for path, text := range pages(t) {
		for _, match := range aFlag.FindAllStringSubmatch(text, -1) {
			checked++
			if !slices.Contains(flags, match[1]) {
				t.Errorf("%s names --%s, which no command has", path, match[1])
			}
		}
		for _, name := range variabl.FindAllString(text, -1) {
			checked++
			if name != "ONEREPLY_" && !slices.Contains(variables, name) {
				t.Errorf("%s names %s, which nothing reads", path, name)
			}
		}
		for _, match := range aCall.FindAllStringSubmatch(text, -1) {
			checked++
			if !slices.Contains(names, match[1]) && match[1] != "help" {
				t.Errorf("%s names the command %q, which does not exist", path, match[1])
			}
		}
		for _, match := range aTarget.FindAllStringSubmatch(text, -1) {
			checked++
			if !strings.Contains(string(makefile), "\n"+match[1]+":") {
				t.Errorf("%s names make %s, which does not exist", path, match[1])
			}
		}
	}
	if checked < 60 {
		t.Errorf("only %d names found in the pages; the patterns are broken", checked)
	}
}

func TestTheReadmeBeginsWithTheTwoCommands(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(top, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "```\ngo run ./cmd/onereply\ngo test ./...\n```\n"; !strings.HasPrefix(string(text), want) {
		t.Errorf("the README begins with %.60q, want the two commands", text)
	}
}

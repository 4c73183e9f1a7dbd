package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version prints what the Go tool recorded when it built this binary.
func version(_ context.Context, p *process, args []string) error {
	own, err := parseFlags(newFlags("version"), args)
	if err != nil {
		return err
	}
	if len(own) > 0 {
		return usagef("unexpected argument %q", own[0])
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	fmt.Fprintf(p.stdout, "onereply %s\n", describe(info))
	return nil
}

// describe gives version, commit, Go version and platform in one line.
func describe(info *debug.BuildInfo) string {
	number, commit, changed := info.Main.Version, "", ""
	if number == "" {
		number = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = " commit " + s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				changed = " with changes"
			}
		}
	}
	return fmt.Sprintf("%s%s%s %s %s/%s", number, commit, changed, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

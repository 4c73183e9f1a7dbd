package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"time"

	"github.com/onereply/onereply/internal/pgcluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == "child" {
		exit(child(ctx, os.Args[2:]))
	}
	exit(run(ctx, os.Args[1:]))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// lab is where measures work.
type lab struct {
	dir     string // on the disk that is measured; removed at the end
	product string // the service's binary
	self    string // this program, for its child processes
	files   int
	profile string             // a folder for CPU profiles; empty: none
	sides   *regexp.Regexp     // of contests: which to measure
	cluster *pgcluster.Cluster // nil until a measure needs it
}

// file returns a fresh path for a database.
func (l *lab) file() string {
	l.files++
	return filepath.Join(l.dir, fmt.Sprintf("bench%d.db", l.files))
}

// measure is one line of the table.
type measure struct {
	name string
	aim  string
	run  func(ctx context.Context, l *lab, runs int) ([]figure, error)
}

func measures() []measure {
	return []measure{
		{"submissions", "at least 0.5 of plain SQL", submissions},
		{"whole life", "at least 0.5 of plain SQL", wholeLife},
		{"idle", "under 1 % CPU, no write", idle},
		{"open streams", "at most 40 KB each, 10,000 of them", streams},
		{"first delta", "p50 under 10 ms", firstDelta},
		{"recovery", "running again within lease + 1 s", recovery},
		{"two processes", "a small write waits p99 at most 100 ms", twoProcesses},
		{"postgres: submissions", "at least pgbench's one-row commits, and 3 times River", pgSubmissions},
		{"postgres: own transaction", "at least River", pgOwnTx},
		{"postgres: batches", "at least 0.7 of InsertManyFast, though three rows each", pgBatches},
		{"postgres: whole life", "at least 10 times River at 64 callers, and 0.5 of the batched limit at 256", pgLife},
		{"postgres: drain", "at least 1.5 times River's best", pgDrain},
		{"postgres: start", "p50 at most 3 ms and p99 at most 10 ms", pgStart},
		{"postgres: recovery", "running again within lease + 1 s", pgRecovery},
		{"postgres: idle", "at most 1 statement a second for each process", pgIdle},
		{"postgres: growth", "flat within 10 %", pgGrown},
	}
}

func run(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("bench", flag.ExitOnError)
	runs := f.Int("runs", 5, "interleaved runs of each measure")
	only := f.String("only", "", "measure only what matches")
	out := f.String("json", "", "write the figures to this file")
	page := f.String("markdown", "", "write the page to this file")
	from := f.String("from", "", "measure nothing; read the figures of an earlier run")
	dir := f.String("dir", "", "where the databases lie; default: a temporary folder")
	sides := f.String("sides", "", "measure only the sides whose names match, without ratios")
	profile := f.String("profile", "", "write CPU profiles of the product's side to this folder")
	if err := f.Parse(args); err != nil {
		return err
	}
	var r report
	var err error
	if *from != "" {
		r, err = readReport(*from)
	} else {
		r, err = measureAll(ctx, *runs, *only, *dir, *profile, *sides)
	}
	if len(r.Results) == 0 && err != nil {
		return err
	}
	// What was measured before an error is kept.
	return errors.Join(err, r.publish(*out, *page))
}

// publish prints the figures and writes them to the files that are named.
func (r report) publish(out, page string) error {
	r.print(os.Stdout)
	if out != "" {
		if err := r.keep(out); err != nil {
			return err
		}
		raw, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(out, append(raw, '\n'), 0o644); err != nil {
			return err
		}
	}
	if page != "" {
		return os.WriteFile(page, r.markdown(), 0o644)
	}
	return nil
}

func measureAll(ctx context.Context, runs int, only, dir, profile, sides string) (r report, err error) {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return r, err
	}
	l := &lab{profile: profile}
	if l.sides, err = regexp.Compile(sides); err != nil {
		return r, err
	}
	if l.dir, err = os.MkdirTemp(dir, "onereply-bench"); err != nil {
		return r, err
	}
	defer func() {
		err = errors.Join(err, os.RemoveAll(l.dir))
		if l.cluster != nil {
			err = errors.Join(err, l.cluster.Close())
		}
	}()
	if l.self, err = os.Executable(); err != nil {
		return r, err
	}
	if l.product, err = build(ctx, l.dir); err != nil {
		return r, err
	}
	r.Runs = runs
	r.Machine, err = machine(l.dir)
	if err != nil {
		return r, err
	}
	for _, m := range measures() {
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		if !wanted.MatchString(m.name) {
			continue
		}
		began := time.Now()
		before, err := loadAverage()
		if err != nil {
			return r, err
		}
		figures, err := m.run(ctx, l, runs)
		if err != nil {
			return r, fmt.Errorf("%s: %w", m.name, err)
		}
		load, err := loadAverage()
		if err != nil {
			return r, err
		}
		r.Results = append(r.Results, result{Name: m.name, Aim: m.aim, Figures: figures, LoadBefore: before, Load: load})
		fmt.Fprintf(os.Stderr, "%s: %v\n", m.name, time.Since(began).Round(time.Second))
	}
	if l.cluster != nil {
		r.Machine.Versions["PostgreSQL"], err = serverVersion(ctx, l.cluster)
	}
	return r, err
}

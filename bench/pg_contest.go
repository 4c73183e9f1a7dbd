package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// entrant is one of several sides that are measured in turn, each on a fresh
// database. It sets itself up, and then times its work with the watch.
type entrant struct {
	name string
	run  func(ctx context.Context, d *database, w *watch) error
}

// watch times the part of a run that counts: by the clock, and by the CPU of
// this process, its children and the server together.
type watch struct {
	server  int // its process id
	profile string
	file    *os.File
	began   time.Time
	before  time.Duration
	rate    float64
	cost    float64 // µs of CPU for each
}

func (w *watch) cpu() (time.Duration, error) {
	used, err := serverCPU(w.server)
	if err != nil {
		return 0, err
	}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			return 0, err
		}
		used += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return used, nil
}

func (w *watch) begin() (err error) {
	if w.profile != "" {
		if w.file, err = os.Create(w.profile); err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(w.file); err != nil {
			return err
		}
	}
	w.before, err = w.cpu()
	w.began = time.Now()
	return err
}

// end says how much was done since begin.
func (w *watch) end(n int) error {
	took := time.Since(w.began)
	if w.file != nil {
		pprof.StopCPUProfile()
		if err := w.file.Close(); err != nil {
			return err
		}
	}
	after, err := w.cpu()
	if err != nil {
		return err
	}
	if n == 0 {
		return errors.New("nothing was done in the time")
	}
	w.rate = float64(n) / took.Seconds()
	w.cost = float64((after - w.before).Microseconds()) / float64(n)
	return nil
}

// contest measures the sides in turn: how much a second, the CPU for each, and
// the ratios of the first side to every other.
func contest(ctx context.Context, l *lab, runs int, name, unit string, sides ...entrant) ([]figure, error) {
	sides = slices.DeleteFunc(sides, func(s entrant) bool { return !l.sides.MatchString(s.name) })
	rates, costs := make([]figure, len(sides)), make([]figure, len(sides))
	for n := range runs {
		for i, s := range sides {
			rates[i].Name, rates[i].Unit = name+s.name, unit+"/s"
			costs[i].Name, costs[i].Unit = name+s.name+", CPU for each", "µs"
			w, err := l.timed(ctx, s, fmt.Sprintf("%s-%s-%d", name, s.name, n))
			if err != nil {
				return nil, fmt.Errorf("%s%s: %w", name, s.name, err)
			}
			fmt.Fprintf(os.Stderr, "  %s%s: %s %s/s, %s µs CPU\n", name, s.name, number(w.rate), unit, number(w.cost))
			rates[i].Values, costs[i].Values = append(rates[i].Values, w.rate), append(costs[i].Values, w.cost)
		}
	}
	all := slices.Clone(rates)
	for i := 1; i < len(sides); i++ {
		all = append(all, ratio(name+sides[0].name+" to "+sides[i].name, rates[0], rates[i]))
	}
	all = append(all, costs...)
	for i := 1; i < len(sides); i++ {
		all = append(all, ratio(name+"CPU for each, "+sides[i].name+" to "+sides[0].name, costs[i], costs[0]))
	}
	return all, nil
}

// timed runs one side on a database of its own.
func (l *lab) timed(ctx context.Context, s entrant, name string) (w *watch, err error) {
	d, err := l.database(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close(ctx)) }()
	w = &watch{server: d.cluster.Pid()}
	if l.profile != "" {
		w.profile = filepath.Join(l.profile, slug(name)+".pprof")
	}
	if err := s.run(ctx, d, w); err != nil || l.profile == "" {
		return w, err
	}
	return w, d.statements(ctx, w.profile+".statements")
}

// statements writes where the server spent its time, beside the CPU profile.
func (d *database) statements(ctx context.Context, path string) error {
	if _, err := d.pool.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"); err != nil {
		return err
	}
	rows, err := d.pool.Query(ctx, `SELECT format('%8s calls %10s ms %8s ms each %8s rows %8s wal  %s', calls, round(total_exec_time), round(mean_exec_time::numeric, 3), rows,
			pg_size_pretty(wal_bytes), left(regexp_replace(regexp_replace(query, '^(--[^\n]*\n)+', ''), '\s+', ' ', 'g'), 110))
		FROM pg_stat_statements s JOIN pg_database b ON b.oid = s.dbid WHERE b.datname = current_database() ORDER BY total_exec_time DESC LIMIT 15`)
	if err != nil {
		return err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

func slug(name string) string {
	text := []rune(name)
	for i, r := range text {
		if r != '-' && (r < '0' || r > 'z') {
			text[i] = '_'
		}
	}
	return string(text)
}

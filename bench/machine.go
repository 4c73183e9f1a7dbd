package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
)

// facts are what a reader needs to know of the machine.
type facts struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	System string `json:"system"`
	Go     string `json:"go"`
	Driver string `json:"driver"`
	// Versions are those of the libraries and servers that were measured.
	Versions   map[string]string `json:"versions,omitempty"`
	SyncMillis float64           `json:"fdatasync_8kb_ms"`
	Load       string            `json:"load_average_before"`
	Warnings   []string          `json:"warnings,omitempty"`
}

// measuredLibraries are named in the facts by these names.
var measuredLibraries = map[string]string{
	"github.com/jackc/pgx/v5": "pgx", "github.com/riverqueue/river": "River", "github.com/dbos-inc/dbos-transact-golang": "DBOS",
}

// String is the facts in a sentence or two.
func (f facts) String() string {
	versions := ""
	for _, name := range slices.Sorted(maps.Keys(f.Versions)) {
		versions += ", " + name + " " + f.Versions[name]
	}
	return fmt.Sprintf("%d cores (%s), %s, %s, modernc.org/sqlite %s"+versions+". An fdatasync after 8 kB takes %.2f ms (median). Load average before: %s.",
		f.Cores, f.CPU, f.System, f.Go, f.Driver, f.SyncMillis, f.Load)
}

func machine(dir string) (f facts, err error) {
	f = facts{Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), CPU: "unknown", Driver: "unknown", Versions: map[string]string{}}
	if raw, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(raw)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				f.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "modernc.org/sqlite" {
				f.Driver = d.Version
			}
			if name, ok := measuredLibraries[d.Path]; ok {
				f.Versions[name] = d.Version
			}
		}
	}
	if f.Load, err = loadAverage(); err != nil {
		return f, err
	}
	f.SyncMillis, err = syncTime(dir)
	return f, err
}

func loadAverage() (string, error) {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "", err
	}
	return strings.Join(strings.Fields(string(raw))[:3], " "), nil
}

// syncTime appends 8 kB and syncs, as a small commit does.
func syncTime(dir string) (float64, error) {
	file, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	page := make([]byte, 8<<10)
	var took []float64
	for range 200 {
		began := time.Now()
		if _, err := file.Write(page); err != nil {
			return 0, err
		}
		if err := syscall.Fdatasync(int(file.Fd())); err != nil {
			return 0, err
		}
		took = append(took, millis(time.Since(began)))
	}
	return percentile(took, 50), nil
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

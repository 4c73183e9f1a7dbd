package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"syscall"
	"time"
)

// side is one of two that are measured in turn: it does its work and says how
// much it did.
type side struct {
	name string
	work func() (int, error)
}

// rivals measures two sides in turn: how much a second, how much CPU for each,
// and the ratio of the first to the second. On a crowded machine the CPU is the
// steadier of the two.
func rivals(l *lab, runs int, unit string, sides ...side) ([]figure, error) {
	rates, costs := make([]figure, 2), make([]figure, 2)
	for n := range runs {
		for i, s := range sides {
			rates[i].Name, rates[i].Unit = s.name, unit+"/s"
			costs[i].Name, costs[i].Unit = s.name+", CPU for each", "µs"
			rate, cost, err := timeOf(l, fmt.Sprintf("%s-%d-%d", unit, i, n), s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			rates[i].Values, costs[i].Values = append(rates[i].Values, rate), append(costs[i].Values, cost)
		}
	}
	return []figure{
		rates[0], rates[1], ratio("ratio of the rates", rates[0], rates[1]),
		costs[0], costs[1], ratio("ratio of the CPU, theirs to ours", costs[1], costs[0]),
	}, nil
}

func timeOf(l *lab, name string, s side) (rate, cost float64, err error) {
	if l.profile != "" {
		file, err := os.Create(filepath.Join(l.profile, name+".pprof"))
		if err != nil {
			return 0, 0, err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return 0, 0, err
		}
		defer pprof.StopCPUProfile()
	}
	before, err := ownCPU()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	n, err := s.work()
	if err != nil {
		return 0, 0, err
	}
	took := time.Since(began)
	after, err := ownCPU()
	return float64(n) / took.Seconds(), float64((after - before).Microseconds()) / float64(n), err
}

// ownCPU is what this process has used so far.
func ownCPU() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

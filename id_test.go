package onereply_test

import (
	"bytes"
	"crypto/rand"
	"io"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/onereply/onereply"
)

var uuid7 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestIDsRiseStrictlyWhateverTheClockDoes(t *testing.T) {
	t.Parallel()
	clocks := map[string]func(i int) time.Time{
		"stands still":           func(int) time.Time { return noon },
		"runs":                   func(i int) time.Time { return noon.Add(time.Duration(i) * time.Millisecond) },
		"runs backwards":         func(i int) time.Time { return noon.Add(-time.Duration(i) * time.Second) },
		"jumps to and fro hours": func(i int) time.Time { return noon.Add(time.Duration(i%3-1) * time.Hour) },
	}
	for name, clock := range clocks {
		for random, reader := range map[string]io.Reader{"random": rand.Reader, "all ones": ones{}, "all zero": zeros{}} {
			t.Run(name+", "+random, func(t *testing.T) {
				t.Parallel()
				i := 0
				ids := onereply.NewIDsFrom(func() time.Time { i++; return clock(i) }, reader)
				last := ""
				// More than fit in one millisecond's sequence.
				for range 10_000 {
					id := ids.New()
					if !uuid7.MatchString(id) {
						t.Fatalf("%s is no UUIDv7", id)
					}
					if id <= last {
						t.Fatalf("%s after %s", id, last)
					}
					last = id
				}
			})
		}
	}
}

type ones struct{}

func (ones) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte{0xff}, len(p))), nil }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestAnIDTellsItsMillisecond(t *testing.T) {
	t.Parallel()
	id := onereply.NewIDsFrom(func() time.Time { return time.UnixMilli(0x0123456789ab) }, zeros{}).New()
	if want := "01234567-89ab-7000-8000-000000000000"; id != want {
		t.Errorf("got %s, want %s", id, want)
	}
}

func TestIDsOfManyGoroutinesDiffer(t *testing.T) {
	t.Parallel()
	ids := onereply.NewIDs()
	var wg sync.WaitGroup
	lists := make([][]string, 8)
	for i := range lists {
		wg.Go(func() {
			for range 1000 {
				lists[i] = append(lists[i], string(ids.NewAttempt()))
			}
		})
	}
	wg.Wait()
	all := slices.Concat(lists...)
	for _, list := range lists {
		if !slices.IsSorted(list) {
			t.Error("one goroutine's ids do not rise")
		}
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != 8000 {
		t.Error("an id was given twice")
	}
}

func TestAMintWithoutRandomnessStops(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("an id was made without randomness")
		}
	}()
	onereply.NewIDsFrom(time.Now, bytes.NewReader(nil)).New()
}

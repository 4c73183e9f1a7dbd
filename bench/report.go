package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// report is everything that was measured in one go.
type report struct {
	Machine facts    `json:"machine"`
	Runs    int      `json:"runs"`
	Results []result `json:"results"`
}

// result is one measure.
type result struct {
	Name       string   `json:"name"`
	Aim        string   `json:"aim"`
	LoadBefore string   `json:"load_average_before,omitempty"`
	Load       string   `json:"load_average_after"`
	Figures    []figure `json:"figures"`
}

// figure is one number with its spread over the runs.
type figure struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Values []float64 `json:"values"` // of the runs, in their order
}

func (f figure) median() float64 {
	sorted := slices.Sorted(slices.Values(f.Values))
	if len(sorted) == 0 {
		return math.NaN()
	}
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

func (f figure) spread() string {
	if len(f.Values) < 2 {
		return ""
	}
	return number(slices.Min(f.Values)) + " – " + number(slices.Max(f.Values))
}

// ratio is a figure over another, run by run.
func ratio(name string, of, over figure) figure {
	r := figure{Name: name}
	for i := range of.Values {
		r.Values = append(r.Values, of.Values[i]/over.Values[i])
	}
	return r
}

// percentile returns the p-th of values, which it sorts.
func percentile(values []float64, p float64) float64 {
	slices.Sort(values)
	if len(values) == 0 {
		return math.NaN()
	}
	return values[min(len(values)-1, int(math.Ceil(p/100*float64(len(values))))-1)]
}

func number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1000:
		return thousands(fmt.Sprintf("%.0f", v))
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func thousands(s string) string {
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func (r report) print(w io.Writer) {
	fmt.Fprintln(w, r.Machine)
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, m := range r.Results {
		fmt.Fprintf(t, "\n%s\taim: %s\t\t\n", m.Name, m.Aim)
		for _, f := range m.Figures {
			fmt.Fprintf(t, "  %s\t%s %s\t%s\n", f.Name, number(f.median()), f.Unit, f.spread())
		}
	}
	if err := t.Flush(); err != nil {
		fmt.Fprintln(w, err)
	}
}

func (r report) markdown() []byte {
	var b bytes.Buffer
	b.WriteString("# Benchmarks\n\n" +
		"This page is written by a program from what it measured; see the last section. Absolute figures of a shared machine drift by half and more,\n" +
		"so read the ratios: both sides were measured in the same run, one after the other. Medians of the runs, and their lowest and highest value.\n\n")
	fmt.Fprintf(&b, "%s %d runs of each.\n", r.Machine, r.Runs)
	for _, m := range r.Results {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\nAim: %s.\n\n| | median | lowest – highest |\n| --- | --- | --- |\n",
			strings.ToUpper(m.Name[:1])+m.Name[1:], explain(m.Name), m.Aim)
		for _, f := range m.Figures {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", f.Name, strings.TrimSpace(number(f.median())+" "+f.Unit), f.spread())
		}
		fmt.Fprintf(&b, "\nLoad average of the machine afterwards: %s.\n", m.Load)
	}
	b.WriteString("\n## Measure it yourself\n\n```\nmake bench\n```\n\n" +
		"or, from `bench/`, `go run . -runs 5 -json results.json -markdown ../docs/benchmarks.md`; `-only submissions` measures one thing.\n")
	return b.Bytes()
}

// explain says what a measure does, for the page.
func explain(name string) string {
	return map[string]string{
		"submissions":               "Sixteen callers submit as fast as they are answered: a key, a task, its input and a row of the application's own from the kind's `Created` hook, durable before the answer. Beside it: the same rows in the same schema through the same driver, written by one goroutine that commits whatever sixteen callers have waiting, with nothing checked.",
		"whole life":                "Tasks from submission to their end: submit, claim, Work that does nothing, accept with a row from the `Ended` hook, each durable and guarded. Beside it: the same rows in plain SQL in groups of fifty, three transactions a group, with nothing checked.",
		"idle":                      "The service with nothing to do, watched for ten seconds.",
		"open streams":              "Ten thousand readers, each following a task of its own over HTTP on loopback, and no event. Memory is the server's heap and stacks after a collection, and what the kernel says is resident; kernel buffers of sockets are not in it.",
		"first delta":               "From pressing Send, which is the start of the POST, to the first delta on the event stream, with the demo model, one press after the other.",
		"recovery":                  "Two processes share a file; the one that works on a task is killed with SIGKILL. From the kill to the moment the other one runs the task.",
		"postgres: submissions":     "Callers submit as fast as they are answered: a key, a task, its input and a row of the application's own from the kind's `Created` hook, durable before the answer. Beside it: pgbench committing a single row; River's `InsertTx` with the application's row in one transaction; DBOS enqueuing a workflow, without a row. A private PostgreSQL with `fsync` and `synchronous_commit` on, for all; sixteen connections each, opened before.",
		"postgres: own transaction": "Sixteen callers, each in a transaction of its own: the application's row and a task by `SubmitTx`; the same with River's `InsertTx`.",
		"postgres: batches":         "A thousand at once, one batch after the other. Ours are three rows each.",
		"postgres: whole life":      "Every caller submits with a row of the application's, waits until the answer and a row of the application's are durable, and submits again. River writes its row and completes by `JobCompleteTx`, at the shortest fetch cooldown that it allows; DBOS starts its workflow in this process, with the row in a transaction of its data source. Plain SQL writes the same rows into the product's tables with nothing checked and nobody waiting: in groups of a hundred, each transaction in one round trip, on four connections; and statement by statement.",
		"postgres: drain":           "Twenty thousand tasks that do nothing are queued; from the start of the workers until all have ended durably. Ours are fenced and leave a response row.",
		"postgres: start":           "From the call of `Submit` to the first instruction of the attempt, in one process: with nothing else to do, and with a submission every millisecond. The first quarter of each run warms plans up and is left out.",
		"postgres: recovery":        "Two processes on one database; the one that works on a task is killed with SIGKILL. From the kill to the moment the other one runs the task. River's own rescue waits an hour unless told otherwise.",
		"postgres: idle":            "Statements that the server was sent in ten seconds with nothing to do, as `pg_stat_statements` counts them.",
		"postgres: growth":          "Whole lives of 64 callers beside tables that hold ten thousand or a million ended tasks with all their rows, and claims of a hundred with so many queued.",
		"two processes":             "Two processes on one file, both submitting with sixteen callers as fast as they can. A small write of one of them, and a renewal, each every few milliseconds.",
	}[name]
}

// keep takes over from an earlier report what was not measured this time, so that
// one measure can be repeated without the others.
func (r *report) keep(path string) error {
	earlier, err := readReport(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	mine := r.Results
	r.Results = nil
	for _, m := range measures() {
		for _, from := range [][]result{mine, earlier.Results} {
			if i := slices.IndexFunc(from, func(x result) bool { return x.Name == m.name }); i >= 0 {
				r.Results = append(r.Results, from[i])
				break
			}
		}
	}
	for name, version := range earlier.Machine.Versions {
		if r.Machine.Versions[name] == "" {
			r.Machine.Versions[name] = version
		}
	}
	return nil
}

func readReport(path string) (r report, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(raw, &r)
}

package onereply_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/onereply/onereply"
)

func TestWhyAWriteWasRefused(t *testing.T) {
	t.Parallel()
	g := onereply.Guard{Task: "t", Version: 2, Attempt: "a"}
	task := func(status onereply.Status, version int64, attempt onereply.AttemptID) *onereply.Task {
		return &onereply.Task{ID: "t", Status: status, Version: version, Attempt: attempt}
	}
	tests := []struct {
		name  string
		task  *onereply.Task
		want  onereply.Why
		ended bool
	}{
		{"purged", nil, onereply.WhyGone, false},
		{"completed by this attempt", task(onereply.StatusCompleted, 2, "a"), onereply.WhyCompleted, true},
		{"completed by another", task(onereply.StatusCompleted, 3, "b"), onereply.WhyCompleted, true},
		{"failed", task(onereply.StatusFailed, 3, "b"), onereply.WhyFailed, true},
		{"cancelled", task(onereply.StatusCancelled, 2, "a"), onereply.WhyCancelled, true},
		{"taken over", task(onereply.StatusRunning, 3, "b"), onereply.WhyTakenOver, false},
		{"the same version handed out twice", task(onereply.StatusRunning, 2, "b"), onereply.WhyTakenOver, false},
		{"taken over and put back", task(onereply.StatusQueued, 3, "b"), onereply.WhyTakenOver, false},
		{"put back", task(onereply.StatusQueued, 2, "a"), onereply.WhyPutBack, false},
		{"expired", task(onereply.StatusRunning, 2, "a"), onereply.WhyExpired, false},
	}
	for _, test := range tests {
		r := onereply.Refuse(g, test.task)
		if r.Why != test.want {
			t.Errorf("%s: %s, want %s", test.name, r.Why, test.want)
		}
		if !errors.Is(r, onereply.ErrFencedOut) || errors.Is(r, onereply.ErrEnded) != test.ended || errors.Is(r, onereply.ErrNotFound) {
			t.Errorf("%s: matches the wrong sentinels", test.name)
		}
		if text := r.Error(); !strings.Contains(text, string(test.want)) || !strings.Contains(text, "task t version 2 attempt a") {
			t.Errorf("%s: text %q", test.name, text)
		}
	}
}

func TestAnOperatorsErrorSaysWhatAndWhere(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err  onereply.Error
		want string
	}{
		{onereply.Error{Op: "accept", Err: errSDK}, "accept: what the SDK said"},
		{onereply.Error{Op: "accept", Guard: onereply.Guard{Task: "t"}, Err: errSDK}, "accept task t: what the SDK said"},
		{onereply.Error{Op: "accept", Guard: onereply.Guard{Task: "t", Version: 2, Attempt: "a"}, Err: errSDK, Hint: "look"}, "accept task t version 2 attempt a: what the SDK said (look)"},
	}
	for _, test := range tests {
		if got := test.err.Error(); got != test.want || !errors.Is(&test.err, errSDK) {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

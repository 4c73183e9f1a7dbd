package onereply

import "fmt"

// Guard names the assignment a write is made under: the task, the assignment
// version (the fencing token) and the attempt's random id. Every write that can
// be late takes one, and a store writes nothing when it is no longer current,
// the lease has expired by the database's clock, or the task has ended (P5).
type Guard struct {
	Task    TaskID
	Version int64
	Attempt AttemptID
}

// String names the guard for logs and errors.
func (g Guard) String() string {
	return fmt.Sprintf("task %s version %d attempt %s", g.Task, g.Version, g.Attempt)
}

// Why says why a guarded write was refused.
type Why string

// The ways to be fenced out.
const (
	WhyCompleted Why = "completed"  // the slot is filled, by Refusal.By
	WhyFailed    Why = "failed"     // the task ended as failed
	WhyCancelled Why = "cancelled"  // the task ended as cancelled
	WhyTakenOver Why = "taken_over" // a later assignment exists
	WhyExpired   Why = "expired"    // the lease is over and nobody has claimed the task yet
	WhyPutBack   Why = "put_back"   // this assignment already retried or released the task
	WhyGone      Why = "gone"       // the task is not there: purged, or never was
)

// Refusal is the typed error of a guarded write that was refused. It matches
// [ErrFencedOut], and [ErrEnded] where the task has ended.
type Refusal struct {
	Guard   Guard
	Why     Why
	Version int64     // of the task now
	By      AttemptID // the attempt that completed or holds the task now
}

// Error says who was refused and why.
func (r *Refusal) Error() string {
	s := fmt.Sprintf("fenced out (%s): %s", r.Why, r.Guard)
	if r.By != "" && r.By != r.Guard.Attempt {
		s += fmt.Sprintf("; now version %d attempt %s", r.Version, r.By)
	}
	return s
}

// Is matches the sentinels a caller switches on.
func (r *Refusal) Is(target error) bool {
	switch target {
	case ErrFencedOut:
		return true
	case ErrEnded:
		return r.Why == WhyCompleted || r.Why == WhyFailed || r.Why == WhyCancelled
	}
	return false
}

// OwnEnd reports whether the assignment was refused because it had ended its
// task, or put it back, itself: housekeeping that came after its own end, such as
// a renewal on its way, and no late answer.
func (r *Refusal) OwnEnd() bool {
	return r.By == r.Guard.Attempt && r.Version == r.Guard.Version &&
		(r.Why == WhyCompleted || r.Why == WhyFailed || r.Why == WhyPutBack)
}

// Refuse classifies a refused guarded write from the task as read afterwards.
// A nil task was not found.
func Refuse(g Guard, now *Task) *Refusal {
	if now == nil {
		return &Refusal{Guard: g, Why: WhyGone}
	}
	r := &Refusal{Guard: g, Version: now.Version, By: now.Attempt}
	switch {
	case now.Status == StatusCompleted:
		r.Why = WhyCompleted
	case now.Status == StatusFailed:
		r.Why = WhyFailed
	case now.Status == StatusCancelled:
		r.Why = WhyCancelled
	case now.Version != g.Version || now.Attempt != g.Attempt:
		r.Why = WhyTakenOver
	case now.Status == StatusQueued:
		r.Why = WhyPutBack
	default:
		r.Why = WhyExpired
	}
	return r
}

//go:build unix

package e2e

import "testing"

// boundaries are the moments at which something may fail, in the order in which
// a task meets them. Each is one test of its own.
var boundaries = []struct {
	step, name string
	test       func(*world)
}{
	{"submit", "crash before commit", submitCrashBeforeCommit},
	{"submit", "crash after commit, before the answer", submitCrashAfterCommit},
	{"submit", "the commit's own answer is lost inside the process", submitCommitAnswerLost},
	{"submit", "the answer is lost on its way to the client", submitAnswerLost},
	{"submit", "50 at once under one key", submitFiftyAtOnce},
	{"submit", "at once on two API processes", submitOnTwoProcesses},

	{"claim", "two workers at once, 200 tasks", claimTwoAtOnce},
	{"claim", "crash right after the claim", claimCrashRightAfter},
	{"claim", "the claim's answer is lost", claimAnswerLost},
	{"claim", "takeover when the lease ends and not before", claimTakeoverAtExpiry},
	{"claim", "the version is seen by the worker that was frozen", claimVersionSeenByOldWorker},

	{"call", "refused before anything was sent", callRefusedBeforeSent},
	{"call", "refused before sent, then the provider comes up", callRefusedThenUp},
	{"call", "cut before the first byte, policy retry", callCutBeforeFirstByte},
	{"call", "cut before the first byte, policy stop", callCutBeforeFirstByteStop},
	{"call", "cut in the middle, policy retry", callCutInTheMiddle},
	{"call", "cut in the middle, policy stop", callCutInTheMiddleStop},
	{"call", "finished but its end was lost, policy retry", callEndLost},
	{"call", "finished but its end was lost, policy stop", callEndLostStop},
	{"call", "crash in the call, policy retry", callCrash},
	{"call", "crash in the call, policy stop", callCrashStop},
	{"call", "crash between the count and the send", callCrashAfterCount},
	{"call", "hang until the call's timeout, policy retry", callHang},
	{"call", "hang until the call's timeout, policy stop", callHangStop},
	{"call", "an SDK that would retry sends once", callNoHiddenRetries},

	{"accept", "crash before the commit", acceptCrashBefore},
	{"accept", "crash while the commit is on its way", acceptCrashDuring},
	{"accept", "the commit's answer is lost", acceptAnswerLost},
	{"accept", "crash after the commit", acceptCrashAfter},
	{"accept", "zombie after takeover, slot empty", acceptZombieSlotEmpty},
	{"accept", "zombie after takeover, slot filled", acceptZombieSlotFilled},
	{"accept", "lease expired while waiting for the lock", acceptLeaseExpiredInQueue},
	{"accept", "cancel at the same moment", acceptCancelAtTheSameMoment},
	{"accept", "cancel while the accept's transaction is open", acceptBeforeCancel},

	{"budget", "takeovers leave the calls' count", budgetTakeovers},
	{"budget", "takeovers leave the attempts' count", budgetAttempts},
	{"budget", "restart and resubmission leave the counts", budgetRestartAndResubmission},
	{"budget", "deadline passes while queued", budgetDeadlineQueued},
	{"budget", "deadline passes in backoff", budgetDeadlineBackoff},
	{"budget", "deadline passes in a call", budgetDeadlineCall},
}

func TestBoundary(t *testing.T) {
	t.Parallel()
	for _, b := range boundaries {
		t.Run(b.step+"/"+b.name, func(t *testing.T) {
			t.Parallel()
			b.test(newWorld(t))
		})
	}
}

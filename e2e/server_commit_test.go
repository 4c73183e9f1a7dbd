//go:build unix

package e2e

import (
	"fmt"
	"testing"
)

// alternately ends the connection of every second COMMIT, in turn before and
// after the server has got it. To the process both are the same.
func alternately(n int) commitFate {
	switch n % 4 {
	case 1:
		return answerLost
	case 3:
		return commitLost
	}
	return delivered
}

// TestCommitAnswersLostBySubmissions: a press whose COMMIT got no answer is read
// again by its key inside the service, whichever of both it was (P11). The
// client notices nothing.
func TestCommitAnswersLostBySubmissions(t *testing.T) {
	t.Parallel()
	w := newServerWorld(t)
	w.troubled = true
	w.calm()
	between := startCable(t, w.server.cluster.Address())
	p := w.start("api", "--database", w.server.url(between.address(), ""))
	w.start("work")
	w.start("sweep")
	a := w.api(p)
	conversation := a.conversation()
	between.decide(alternately)
	const presses = 20
	for i := range presses {
		w.send(a, conversation, fmt.Sprintf("k%d", i), fmt.Sprintf("q%d", i), nil) // has to be told 202, and once
	}
	if lost, undone := between.endings(answerLost), between.endings(commitLost); lost != presses/2 || undone != presses/2 {
		t.Errorf("%d answers and %d commits were lost, want %d of each", lost, undone, presses/2)
	}
	_, refused := insistMany(w, a, conversation, "many", 60)
	t.Logf("of 60 at once %d were told to come back; %d answers and %d commits were lost", refused, between.endings(answerLost), between.endings(commitLost))
	between.decide(nil)
	allCompleted(w, presses+60, true)
	w.settle(p)
}

// TestCommitAnswersLostByAccepts: a worker whose COMMIT got no answer reads the
// task before it does anything again: nothing is generated twice, and nobody
// takes it for a late answer.
func TestCommitAnswersLostByAccepts(t *testing.T) {
	t.Parallel()
	w := newServerWorld(t)
	w.troubled = true
	w.calm()
	between := startCable(t, w.server.cluster.Address())
	p := w.start("api")
	w.start("work", "--database", w.server.url(between.address(), ""))
	w.start("sweep")
	a := w.api(p)
	conversation := a.conversation()
	between.decide(alternately)
	const alone = 12
	for i := range alone {
		text := fmt.Sprintf("q%d", i)
		task := w.send(a, conversation, text, text, nil)
		w.expect(p, task.ID, want{status: "completed", text: "answer to " + text, version: 1, attempts: 1, calls: 1, requests: 1})
	}
	if lost, undone := between.endings(answerLost), between.endings(commitLost); lost < 4 || undone < 4 {
		t.Errorf("%d answers and %d commits were lost, want at least 4 of each", lost, undone)
	}
	insistMany(w, a, conversation, "many", 60)
	allCompleted(w, alone+60, true)
	if n := w.ledger().count("SELECT count(*) FROM events WHERE type = 'fenced_out'"); n != 0 {
		t.Errorf("%d answers were taken for late ones", n)
	}
	t.Logf("%d answers and %d commits were lost", between.endings(answerLost), between.endings(commitLost))
	between.decide(nil)
	w.settle(p)
}

// Package onereplytest tries the kinds and hooks of a program at the moments
// where work gets lost or done twice, on the real engine and a real SQLite file,
// in virtual time: a takeover that takes thirty seconds takes none.
//
// [Boundaries] runs each boundary as a subtest: a submission that is rolled
// back, fifty at once, a worker killed before, in and after a call, a commit
// whose answer is lost, a zombie that comes back after it was taken over, a
// cancel in the middle, a drain, a deadline, a resume. After each it checks what
// the engine promises, counts the rows that the kind's own hooks left, and says
// in plain words which were lost or doubled.
//
//	func TestReplies(t *testing.T) {
//		onereplytest.Boundaries(t, func(t *testing.T, w *onereplytest.World) onereplytest.Case {
//			w.Exec(`CREATE TABLE answers (task_id TEXT PRIMARY KEY, text TEXT NOT NULL)`)
//			replies := newReplies(w.Provider) // an http.RoundTripper that plays the model
//			return onereplytest.Case{
//				Kind: replies.Kind(),
//				Submission: func(i int, key string) (onereply.Submission, error) {
//					return replies.Submission("me", key, Ask{Text: fmt.Sprint("question ", i)})
//				},
//				Ended: onereplytest.Query(`SELECT task_id FROM answers`),
//			}
//		})
//	}
//
// What the boundaries are made of can be used alone: [Run] opens a [World], in
// which [World.Start] starts processes, [Process.HoldAt] stops one at a named
// [Point], and [Process.Kill], [Process.Freeze], [Process.Thaw],
// [Process.LoseAnswers] and [Process.RollBack] do to it what happens to real
// ones. Start reading at boundaries.go, then process.go.
package onereplytest

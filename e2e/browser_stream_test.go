//go:build unix

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onereply/onereply/provider/simulator"
)

// slowly says many words, one every few milliseconds.
func slowly(text string, pace time.Duration) step {
	return func(<-chan struct{}) simulator.Plan { return simulator.Plan{Text: text, Pace: pace, Finish: "stop"} }
}

// hangs says the text and then nothing more, without an end.
func hangs(text string) step { return faulty(text, simulator.Hang) }

// counting is "w1 w2 … wn": a gap or a repeat in it shows.
func counting(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprintf("w%d", i+1)
	}
	return strings.Join(words, " ")
}

func TestBrowserStream(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	for name, try := range map[string]func(*testing.T, context.Context){
		"a reload in the middle of a draft goes on with it and starts no work":            streamReload,
		"a line cut in the middle of a draft goes on after the last event":                streamCut,
		"while the service is gone for a while the page says so, and then goes on":        streamAway,
		"hiding and showing the page repeats no request but the stream":                   streamHidden,
		"a page mounted twice still opens one stream":                                     streamTwice,
		"Stop ends the answer, and nothing comes after it":                                streamStop,
		"Stop while the worker is frozen refuses the answer that it brings later":         streamStopLate,
		"Stop while nobody works ends the task without a call":                            streamStopQueued,
		"a worker killed in the middle of a draft is told, and its successor's answer is": streamKilled,
		"deleting a conversation in the middle of a draft stops it and no other":          streamDelete,
	} {
		t.Run(name, func(t *testing.T) { try(t, browser) })
	}
}

// awaitDraft waits until the last turn's draft contains a text.
func (b *tab) awaitDraft(part string) {
	b.t.Helper()
	b.awaitTurns("a draft with "+part, func(turns []turn) bool {
		return len(turns) > 0 && strings.Contains(turns[len(turns)-1].Draft, part)
	})
}

// watchDrafts collects every draft that is ever shown, across reloads of the
// page, in the tab's session storage.
func (b *tab) watchDrafts() {
	b.t.Helper()
	script := `new MutationObserver(() => {
		for (const draft of document.querySelectorAll(".draft:not([hidden])")) sessionStorage.drafts = (sessionStorage.drafts ?? "") + draft.textContent + "\n";
	}).observe(document, { subtree: true, childList: true, characterData: true });`
	b.beforeLoad(script)
	eval[bool](b, "("+strings.TrimSuffix(script, ";")+", true)")
}

// wantPrefixes checks that every draft that was shown is a beginning of the answer.
func (b *tab) wantPrefixes(answer string) {
	b.t.Helper()
	for _, draft := range strings.Split(eval[string](b, `sessionStorage.drafts ?? ""`), "\n") {
		if !strings.HasPrefix(answer, strings.TrimSpace(draft)) {
			b.t.Fatalf("a draft was shown that is no beginning of the answer:\n%s", draft)
		}
	}
}

func streamReload(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	answer := counting(150)
	d.model.script("q", slowly(answer, 20*time.Millisecond))
	b := d.open("/")
	b.watchDrafts()
	b.send("q")
	b.awaitDraft("w10 ")
	b.reload()
	b.awaitDraft("w30 ")
	b.awaitAnswers(answer)
	b.wantPrefixes(answer)
	b.reload()
	b.awaitAnswers(answer)
	if n := len(d.line.posts("")); n != 2 {
		t.Errorf("%d POSTs, want the conversation and the message", n)
	}
	d.wantRows(1, 1, 1)
}

func streamCut(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	answer := counting(150)
	d.model.script("q", slowly(answer, 20*time.Millisecond))
	b := d.open("/")
	b.watchDrafts()
	b.send("q")
	for _, word := range []string{"w10 ", "w40 ", "w70 "} {
		b.awaitDraft(word)
		d.line.gateway.cut()
	}
	b.awaitAnswers(answer)
	b.wantPrefixes(answer)
	resumed := 0
	for _, s := range d.line.streams() {
		if strings.HasPrefix(s.LastEventID, "1.") {
			resumed++
		}
	}
	if resumed < 3 {
		t.Errorf("three cuts, and %d streams resumed after an event: %+v", resumed, d.line.streams())
	}
	d.wantRows(1, 1, 1)
}

func streamAway(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	answer := counting(150)
	d.model.script("q", slowly(answer, 20*time.Millisecond))
	b := d.open("/")
	b.watchDrafts()
	b.send("q")
	b.awaitDraft("w10 ")
	d.line.gateway.shut(true)
	b.awaitTurns("a lost line that is told", func(turns []turn) bool {
		return len(turns) == 1 && strings.Contains(turns[0].Status, "Connection lost")
	})
	// The answer is finished and saved while the page cannot hear of it.
	id := d.taskOf("q")
	newAPI(t, d.process.url).awaitEnd(id)
	d.line.gateway.shut(false)
	b.awaitAnswers(answer)
	b.wantPrefixes(answer)
	d.wantRows(1, 1, 1)
}

// taskOf gives the newest task of a question, from the file.
func (d *desk) taskOf(question string) string {
	d.t.Helper()
	return d.ledger().text(`SELECT task_id FROM messages WHERE role = 'user' AND text = ? ORDER BY id DESC LIMIT 1`, question)
}

func streamHidden(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	answer := counting(150)
	d.model.script("q", slowly(answer, 20*time.Millisecond))
	b := d.open("/")
	b.watchDrafts()
	b.send("q")
	b.awaitDraft("w10 ")
	posts := len(d.line.posts(""))
	show := func(state string) {
		eval[bool](b, `(Object.defineProperty(document, "visibilityState", { value: "`+state+`", configurable: true }),
			Object.defineProperty(document, "hidden", { value: `+fmt.Sprint(state == "hidden")+`, configurable: true }),
			document.dispatchEvent(new Event("visibilitychange")), true)`)
	}
	show("hidden")
	show("visible")
	b.awaitDraft("w50 ")
	show("hidden")
	show("visible")
	b.awaitAnswers(answer)
	b.wantPrefixes(answer)
	if n := len(d.line.posts("")); n != posts {
		t.Errorf("%d POSTs after hiding and showing, %d before", n, posts)
	}
	d.wantRows(1, 1, 1)
}

func streamTwice(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	d.model.script("q", hangs("so far"))
	b := d.open("/")
	b.send("q")
	b.awaitDraft("so far")
	// The page's script runs once more in the same document.
	b.do(evaluateAsync(`import("/assets/js/app.js?again")`))
	b.awaitTurns("the draft in both", func(turns []turn) bool { return len(turns) == 1 && turns[0].Draft == "so far" })
	if n := len(d.line.streams()); n > 2 {
		t.Errorf("%d streams were opened", n)
	}
	if n := len(d.line.posts("")); n != 2 {
		t.Errorf("%d POSTs, want the conversation and the message", n)
	}
	d.wantRows(1, 1, 1)
}

func streamStop(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	d.model.script("q", hangs("this will never"))
	b := d.open("/")
	b.send("q")
	b.awaitDraft("this will never")
	b.clickText("Stop")
	stopped := func(turns []turn) bool {
		return len(turns) == 1 && turns[0].State == "cancelled" && strings.Contains(turns[0].Trouble, "Stopped") && turns[0].Draft == "" && turns[0].Answer == ""
	}
	b.awaitTurns("it is stopped", stopped)
	d.model.awaitLeft("q", 1, 10*time.Second) // the provider was told by the line
	b.reload()
	b.awaitTurns("it is still stopped", stopped)
	d.wantRows(1, 1, 1)
	// Asking again after Stop is another task.
	d.model.script("q", say("now"))
	b.clickText("Answer again")
	b.awaitAnswers("now")
	d.wantRows(1, 2, 2)
}

func streamStopLate(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, "api")
	worker := d.start("work,dispatch,sweep")
	held1 := newGate()
	d.model.script("q", held(held1, say("too late")))
	b := d.open("/")
	b.send("q")
	d.model.awaitAsked("q", 1)
	d.freezeInCall(worker)
	b.clickText("Stop")
	stopped := func(turns []turn) bool {
		return len(turns) == 1 && turns[0].State == "cancelled" && turns[0].Answer == ""
	}
	b.awaitTurns("it is stopped", stopped)
	held1.open() // the answer is on its way to the frozen worker
	worker.thaw()
	// The thawed worker takes up the next question, so it is done with this one.
	b.send("r")
	b.awaitTurns("the next answer, and none to the stopped question", func(turns []turn) bool {
		return len(turns) == 2 && stopped(turns[:1]) && turns[1].Answer == "answer to r"
	})
	b.reload()
	b.awaitTurns("the same after a reload", func(turns []turn) bool {
		return len(turns) == 2 && stopped(turns[:1]) && turns[1].Answer == "answer to r"
	})
	if n := d.rows("SELECT count(*) FROM messages WHERE text = 'too late'"); n != 0 {
		t.Errorf("the late answer was saved %d times", n)
	}
}

func streamStopQueued(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, "api")
	b := d.open("/")
	b.send("q")
	b.awaitTurns("it waits", func(turns []turn) bool { return len(turns) == 1 && turns[0].State == "queued" })
	b.clickText("Stop")
	b.awaitTurns("it is stopped", func(turns []turn) bool { return len(turns) == 1 && turns[0].State == "cancelled" })
	d.start("work,dispatch,sweep")
	b.send("r")
	b.awaitTurns("the next is answered", func(turns []turn) bool { return len(turns) == 2 && turns[1].Answer == "answer to r" })
	if n := len(d.model.asked("q")); n != 0 {
		t.Errorf("the stopped question was asked %d times", n)
	}
}

func streamKilled(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, "api")
	d.flags = append(d.flags, "--lease", lease.String(), "--renew", renew.String())
	first := d.start("work,dispatch,sweep")
	d.model.script("q", hangs("old words"), slowly("new "+counting(60), 20*time.Millisecond))
	b := d.open("/")
	b.send("q")
	b.awaitDraft("old words")
	first.kill()
	d.start("work,dispatch,sweep")
	b.awaitTurns("the takeover is told", func(turns []turn) bool {
		return len(turns) == 1 && strings.Contains(turns[0].Status, "worker was lost") && !strings.Contains(turns[0].Draft, "old words")
	})
	b.awaitAnswers("new " + counting(60))
	b.until("two attempts are counted under the answer", `document.querySelector(".facts").textContent.includes("2 attempts")`)
	d.wantRows(1, 1, 2)
	// The task's own view tells the same.
	b.click(0, "[data-does=task]")
	b.until("the drawing has a lane for each attempt", `document.querySelectorAll(".timeline .lane").length === 3`)
	b.until("the table lists the takeover", `[...document.querySelectorAll(".task tbody tr")].filter((r) => r.textContent.includes("claimed")).length === 2`)
}

func streamDelete(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	d.model.script("doomed", hangs("half of"))
	d.model.script("other", slowly(counting(100), 20*time.Millisecond))
	b := d.open("/")
	b.send("doomed")
	b.awaitDraft("half of")
	doomed := eval[string](b, "location.pathname")
	b.click(-1, "#new-conversation")
	b.until("the new conversation is empty", `document.querySelectorAll(".turn").length === 0`)
	b.send("other")
	b.awaitDraft("w5 ")
	other := d.open(eval[string](b, "location.pathname"))
	b.do(clickHidden(`#conversations .row:last-child .delete`))
	b.clickText("Delete")
	b.until("it is no longer listed", `document.querySelectorAll("#conversations .row").length === 1`)
	d.model.awaitLeft("doomed", 1, 10*time.Second)
	b.awaitAnswers(counting(100))
	other.until("the other tab does not list it either", `document.querySelectorAll("#conversations .row").length === 1`)
	b.goTo(doomed)
	b.until("its address leads nowhere", `document.querySelector(".nothing")?.textContent.includes("There is nothing here")`)
	if n := d.rows("SELECT count(*) FROM messages WHERE text LIKE 'half of%' OR text = 'doomed'"); n != 0 {
		t.Errorf("%d messages of the deleted conversation", n)
	}
}

//go:build unix

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// desk is one browser test's world: the service, the line to it, the browser.
type desk struct {
	*world

	browser context.Context
	line    *line
	process *process
}

// sitDown starts a service with the roles and further flags, and a line to it.
func sitDown(t *testing.T, browser context.Context, roles string, flags ...string) *desk {
	t.Helper()
	d := &desk{world: newWorld(t), browser: browser}
	// These tests count what the page asks for; a machine too busy to renew a
	// short lease would add a takeover to that.
	d.flags = append(d.flags, "--lease", "20s", "--renew", "2s")
	d.process = d.start(roles, flags...)
	d.line = startLine(t, d.process.url)
	return d
}

func (d *desk) open(path string) *tab {
	d.t.Helper()
	return openTab(d.t, d.browser, d.line.url(), path)
}

// rows counts what is in the file.
func (d *desk) rows(query string, args ...any) int {
	d.t.Helper()
	return d.ledger().count(query, args...)
}

// wantRows checks how many user messages and tasks there are, and how many
// requests the model got.
func (d *desk) wantRows(messages, tasks, requests int) {
	d.t.Helper()
	got := [3]int{d.rows("SELECT count(*) FROM messages WHERE role = 'user'"), d.rows("SELECT count(*) FROM tasks"), d.model.sim.Total()}
	if want := [3]int{messages, tasks, requests}; got != want {
		d.t.Errorf("messages, tasks, requests to the model: %v, want %v", got, want)
	}
}

func messagePost(p passed) bool { return p.Method == "POST" && strings.HasSuffix(p.Path, "/messages") }

func TestBrowserSend(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	for name, try := range map[string]func(*testing.T, context.Context){
		"an answer lost twice is asked for again under one key, and Send again is another press": sendLostAnswer,
		"the first message of a conversation whose making is lost makes one conversation":        sendLostConversation,
		"a reload with the message pending sends it under its key and shows one bubble":          sendReloadPending,
		"a message given up is sent by its button under the same key":                            sendRetryButton,
		"while the line is down the message is kept, and its return sends it once":               sendOffline,
		"fifty quick presses are fifty messages in their order":                                  sendFifty,
		"a double press sends once": sendDoublePress,
		"Enter sends, Shift and Enter break the line, an input method's Enter does neither": sendKeys,
		"two tabs show the answer once each and send once":                                  sendTwoTabs,
		"a tab that is closed leaves its message to the other":                              sendOrphan,
		"what the service refuses for good is told and forgotten":                           sendRefused,
	} {
		t.Run(name, func(t *testing.T) { try(t, browser) })
	}
}

func sendLostAnswer(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	b := d.open("/")
	b.send("warm up")
	b.awaitAnswers("answer to warm up")
	// 1. The message arrives and its answer is lost, twice; the third gets back.
	lost := 0
	d.line.decide(func(p passed) fate {
		if messagePost(p) && lost < 2 {
			lost++
			return loseBack
		}
		return deliver
	})
	b.send("q")
	b.awaitAnswers("answer to warm up", "answer to q")
	sent := d.line.posts("/messages")[1:]
	if len(sent) < 3 || len(keys(sent)) != 1 || sent[0].Body != sent[len(sent)-1].Body {
		t.Errorf("want three tries or more with one key and the same bytes: %+v", sent)
	}
	d.wantRows(2, 2, 2)
	// 2. The same text, pressed again, is meant again.
	b.send("q")
	b.awaitAnswers("answer to warm up", "answer to q", "answer to q")
	if n := len(keys(d.line.posts("/messages"))); n != 3 {
		t.Errorf("%d keys for three presses", n)
	}
	d.wantRows(3, 3, 3)
}

func sendLostConversation(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	b := d.open("/")
	lost := map[string]bool{}
	d.line.decide(func(p passed) fate {
		if p.Method != "POST" || lost[p.Path] {
			return deliver
		}
		lost[p.Path] = true
		return loseBack
	})
	b.send("q")
	b.awaitAnswers("answer to q")
	if n := d.rows("SELECT count(*) FROM conversations"); n != 1 {
		t.Errorf("%d conversations", n)
	}
	d.wantRows(1, 1, 1)
	b.until("the address names the conversation", `location.pathname.startsWith("/c/")`)
	b.until("the list shows it once", `document.querySelectorAll("#conversations .row").length === 1`)
}

func sendReloadPending(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	b := d.open("/")
	b.send("warm up")
	b.awaitAnswers("answer to warm up")
	d.line.decide(func(p passed) fate {
		if messagePost(p) {
			return loseBack
		}
		return deliver
	})
	b.send("q")
	d.model.awaitAsked("q", 1) // it arrived; only the page does not know
	b.reload()
	turns := b.awaitTurns("one bubble for q after the reload", func(turns []turn) bool { return len(turns) == 2 && turns[1].Question == "q" })
	if turns[0].Question != "warm up" {
		t.Errorf("turns %+v", turns)
	}
	d.line.decide(nil)
	b.awaitAnswers("answer to warm up", "answer to q")
	if got := keys(d.line.posts("/messages")); len(got) != 2 {
		t.Errorf("keys %v for two presses", got)
	}
	d.wantRows(2, 2, 2)
	b.reload()
	b.awaitAnswers("answer to warm up", "answer to q")
}

func sendRetryButton(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	b := d.open("/")
	b.send("warm up")
	b.awaitAnswers("answer to warm up")
	// The message arrives, and something on the way says: come back in three hours.
	d.line.decide(func(p passed) fate {
		if messagePost(p) {
			return later
		}
		return deliver
	})
	b.send("q")
	b.awaitTurns("the message is shown as not sent", func(turns []turn) bool {
		return slices.ContainsFunc(turns, func(x turn) bool { return x.State == "not_sent" && strings.Contains(x.Delivery, "Not sent") })
	})
	b.reload() // it stays so, and stays with its key
	b.awaitTurns("it is still shown as not sent", func(turns []turn) bool {
		return slices.ContainsFunc(turns, func(x turn) bool { return x.State == "not_sent" })
	})
	d.line.decide(nil)
	b.clickText("Try again")
	b.awaitAnswers("answer to warm up", "answer to q")
	if got := keys(d.line.posts("/messages")); len(got) != 2 {
		t.Errorf("keys %v for two presses", got)
	}
	d.wantRows(2, 2, 2)
}

func sendOffline(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	b := d.open("/")
	b.send("warm up")
	b.awaitAnswers("answer to warm up")
	d.line.gateway.shut(true)
	b.send("q")
	b.awaitTurns("it is said that the service cannot be reached", func(turns []turn) bool {
		return len(turns) == 2 && strings.Contains(turns[1].Delivery, "cannot be reached")
	})
	d.line.gateway.shut(false)
	b.awaitAnswers("answer to warm up", "answer to q")
	if got := keys(d.line.posts("/messages")); len(got) != 2 {
		t.Errorf("keys %v for two presses", got)
	}
	d.wantRows(2, 2, 2)
}

func sendFifty(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	b := d.open("/")
	var answers []string
	for n := range 50 {
		b.send(fmt.Sprintf("question %d", n))
		answers = append(answers, fmt.Sprintf("answer to question %d", n))
	}
	b.awaitAnswersWithin(answers)
	d.wantRows(50, 50, 50)
	if got := keys(d.line.posts("/messages")); len(got) != 50 {
		t.Errorf("%d keys for fifty presses", len(got))
	}
	b.reload()
	b.awaitTurns("the same after a reload", func(turns []turn) bool {
		return len(turns) == 50 && turns[0].Question == "question 0" && turns[49].Question == "question 49"
	})
}

// awaitAnswersWithin is awaitAnswers for turns that may be out of sight.
func (b *tab) awaitAnswersWithin(answers []string) {
	b.t.Helper()
	b.awaitTurns(fmt.Sprintf("%d answers in order", len(answers)), func(turns []turn) bool {
		got := make([]string, len(turns))
		for i, turn := range turns {
			got[i] = turn.Answer
		}
		return slices.Equal(got, answers)
	})
}

func sendDoublePress(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	b := d.open("/")
	b.write("q")
	b.enter()
	b.enter()
	b.awaitAnswers("answer to q")
	b.write("r")
	b.doubleClick(-1, ".send")
	b.awaitAnswers("answer to q", "answer to r")
	// A held key repeats; that is one press.
	b.write("s")
	eval[bool](b, `(() => {
		const field = document.getElementById("message");
		for (const repeat of [false, true, true]) field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", repeat, bubbles: true, cancelable: true }));
		return true;
	})()`)
	b.awaitAnswers("answer to q", "answer to r", "answer to s")
	d.wantRows(3, 3, 3)
}

func sendKeys(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	d.model.script("one\ntwo", say("both lines"))
	d.model.script("かな", say("kana"))
	b := d.open("/")
	b.write("one")
	b.press("Enter", "\r", 13, 8) // with Shift
	b.write("two")
	if got := eval[string](b, `document.getElementById("message").value`); got != "one\ntwo" {
		t.Fatalf("Shift and Enter gave %q", got)
	}
	b.enter()
	b.awaitAnswers("both lines")
	// The Enter that ends a composition belongs to the input method.
	b.do(chromedp.Focus(chromedp.CSS("#message")), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, input.ImeSetComposition, input.ImeSetCompositionParams{Text: "かな", SelectionStart: 2, SelectionEnd: 2})
		return err
	}))
	b.press("Enter", "", 229, 0)
	eval[bool](b, `document.getElementById("message").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", isComposing: true, bubbles: true, cancelable: true }))`)
	if got := eval[string](b, `document.getElementById("message").value`); got != "かな" {
		t.Fatalf("the composing Enter left %q in the field", got)
	}
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, input.InsertText, input.InsertTextParams{Text: "かな"})
		return err
	}))
	b.enter()
	b.awaitAnswers("both lines", "kana")
	d.wantRows(2, 2, 2)
}

func sendTwoTabs(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	one := d.open("/")
	one.send("q")
	one.awaitAnswers("answer to q")
	two := d.open(eval[string](one, "location.pathname"))
	two.awaitAnswers("answer to q")
	lost := 0
	d.line.decide(func(p passed) fate {
		if messagePost(p) && lost < 3 {
			lost++
			return loseBack
		}
		return deliver
	})
	one.send("from one")
	two.send("from two")
	for _, b := range []*tab{one, two} {
		turns := b.awaitTurns("three answers", func(turns []turn) bool {
			return len(turns) == 3 && !slices.ContainsFunc(turns, func(x turn) bool { return x.State != "completed" || x.Answer == "" })
		})
		for _, x := range turns {
			if x.Answer != "answer to "+x.Question {
				t.Errorf("%+v", x)
			}
		}
	}
	if got := keys(d.line.posts("/messages")); len(got) != 3 {
		t.Errorf("keys %v for three presses", got)
	}
	d.wantRows(3, 3, 3)
}

func sendOrphan(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	one := d.open("/")
	one.send("q")
	one.awaitAnswers("answer to q")
	two := d.open(eval[string](one, "location.pathname"))
	two.awaitAnswers("answer to q")
	d.line.decide(func(p passed) fate {
		if messagePost(p) {
			return loseThere
		}
		return deliver
	})
	one.send("orphan")
	two.awaitTurns("the other tab shows the pending message", func(turns []turn) bool { return len(turns) == 2 && turns[1].Question == "orphan" })
	if err := chromedp.Cancel(one.ctx); err != nil {
		t.Fatal(err)
	}
	d.line.decide(nil)
	two.awaitAnswers("answer to q", "answer to orphan")
	if got := keys(d.line.posts("/messages")); len(got) != 2 {
		t.Errorf("keys %v for two presses", got)
	}
	d.wantRows(2, 2, 2)
}

func sendRefused(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything, "--max-message", "64")
	b := d.open("/")
	b.send("q")
	b.awaitAnswers("answer to q")
	long := strings.Repeat("long ", 40) + "end"
	b.send(long)
	b.awaitTurns("the refusal is told", func(turns []turn) bool {
		return len(turns) == 2 && turns[1].State == "refused" && strings.HasPrefix(turns[1].Delivery, "Refused:")
	})
	b.clickText("Edit")
	if got := eval[string](b, `document.getElementById("message").value`); got != long {
		t.Errorf("the text did not come back: %q", got)
	}
	b.reload()
	b.awaitAnswers("answer to q")
	if n := len(d.line.posts("/messages")); n != 2 {
		t.Errorf("%d POSTs; a refusal is not tried again", n)
	}
	d.wantRows(1, 1, 1)
}

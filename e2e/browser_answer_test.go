//go:build unix

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"github.com/onereply/onereply/provider/simulator"
)

// refuses is a provider's refusal that no repetition cures.
func refuses(code string) step {
	return func(<-chan struct{}) simulator.Plan {
		return simulator.Plan{Fault: simulator.Status, After: simulator.Before, Status: http.StatusBadRequest, Code: code}
	}
}

func evaluateAsync(expression string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](expression+".then(() => true)", chromedp.EvalAwaitPromise)
}

// clickHidden clicks what is only shown while the pointer is over it.
func clickHidden(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector(%q).click()`, selector))
}

func TestBrowserAnswer(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	for name, try := range map[string]func(*testing.T, context.Context){
		"a Regenerate that fails keeps the answer, and a double click is one task":   answerRegenerate,
		"a Regenerate whose answer is lost on the way is one task":                   answerRegenerateLost,
		"an answer whose outcome is not known asks before it is tried again":         answerUnknown,
		"a failure is told in words, also after a reload, and can be tried again":    answerFailed,
		"HTML in an answer is shown as text, and Markdown is shown as what it means": answerHTML,
		"a long answer and a text from right to left are shown whole":                answerLong,
		"everything that can be used has a name, and the keyboard reaches it":        answerKeyboard,
		"the demo model is labelled":                                                 answerDemo,
	} {
		t.Run(name, func(t *testing.T) { try(t, browser) })
	}
}

func answerRegenerate(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	d.model.script("q", say("A1"), refuses("content_filter"), say("A2"))
	b := d.open("/")
	b.send("q")
	b.awaitAnswers("A1")
	// 1. The provider fails; the press is a double click.
	b.doubleClick(0, "[data-does=regenerate]")
	failed := func(turns []turn) bool {
		return len(turns) == 1 && turns[0].State == "failed" && turns[0].Answer == "A1" && strings.Contains(turns[0].Trouble, "earlier answer is kept")
	}
	b.awaitTurns("the failure beside the kept answer", failed)
	if got := d.line.posts("/regenerate"); len(keys(got)) != 1 {
		t.Errorf("a double click made %d presses: %+v", len(keys(got)), got)
	}
	d.wantRows(1, 2, 2)
	b.reload()
	b.awaitTurns("the same after a reload", failed)
	// 2. The provider is well again; a new press is a new task.
	b.click(0, "[data-does=regenerate]")
	siblings := func(answer, count string) func([]turn) bool {
		return func(turns []turn) bool {
			return len(turns) == 1 && turns[0].State == "completed" && turns[0].Answer == answer && turns[0].Siblings == count
		}
	}
	b.awaitTurns("the new answer with the old one as its sibling", siblings("A2", "2/2"))
	if got := keys(d.line.posts("/regenerate")); len(got) != 2 {
		t.Errorf("keys %v for two presses", got)
	}
	d.wantRows(1, 3, 3)
	b.reload()
	b.awaitTurns("the same after a reload", siblings("A2", "2/2"))
	b.click(0, "[data-does=earlier]")
	b.awaitTurns("the old answer", siblings("A1", "1/2"))
	b.click(0, "[data-does=later]")
	b.awaitTurns("the new answer", siblings("A2", "2/2"))
}

func answerRegenerateLost(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	d.model.script("q", say("A1"), say("A2"))
	b := d.open("/")
	b.send("q")
	b.awaitAnswers("A1")
	d.line.decide(func(p passed) fate {
		if strings.HasSuffix(p.Path, "/regenerate") {
			return loseBack
		}
		return deliver
	})
	b.click(0, "[data-does=regenerate]")
	d.model.awaitAsked("q", 2)
	b.reload() // the press is still not settled
	d.line.decide(nil)
	b.awaitAnswers("A2")
	if got := keys(d.line.posts("/regenerate")); len(got) != 1 {
		t.Errorf("keys %v for one press", got)
	}
	d.wantRows(1, 2, 2)
}

func answerUnknown(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything, "--on-unknown-outcome", "stop")
	d.model.script("q", faulty("half", simulator.Cut), say("second"))
	b := d.open("/")
	b.send("q")
	b.awaitTurns("the unknown outcome is told", func(turns []turn) bool {
		return len(turns) == 1 && turns[0].State == "failed" && strings.Contains(turns[0].Trouble, "may cost twice")
	})
	b.clickText("Try again")
	b.until("it asks first", `document.getElementById("ask").open && document.getElementById("ask").textContent.includes("cost twice")`)
	b.clickText("Cancel")
	b.until("the question is closed", `!document.getElementById("ask").open`)
	d.wantRows(1, 1, 1)
	b.click(0, ".trouble button")
	b.until("it asks again", `document.getElementById("ask").open`)
	b.click(-1, "#ask-yes")
	b.awaitAnswers("second")
	d.wantRows(1, 1, 2)
}

func answerFailed(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	d.model.script("q", refuses("content_filter"), say("well then"))
	b := d.open("/")
	b.send("q")
	failed := func(turns []turn) bool {
		return len(turns) == 1 && turns[0].State == "failed" && strings.Contains(turns[0].Trouble, "refused to answer") && turns[0].Answer == "" && turns[0].Draft == ""
	}
	b.awaitTurns("the failure in words", failed)
	b.reload()
	b.awaitTurns("the failure after a reload", failed)
	b.clickText("Try again")
	b.awaitAnswers("well then")
	if n := len(keys(d.line.posts("/resume"))); n != 1 {
		t.Errorf("%d presses of Try again", n)
	}
	d.wantRows(1, 1, 2)
}

func answerHTML(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	bad := `<img src=x onerror="window.hit=1"> <script>window.hit=2</script> <b>plain</b>`
	d.model.script("html", say(bad))
	d.model.script("markdown", say("A **word**, a [link](https://example.org/) and\n\n- one\n- two\n\n[bad](javascript:window.hit=3) ![pixel](https://example.org/p.png)"))
	d.model.script("draft", hangs(bad))
	b := d.open("/")
	b.send("html")
	b.awaitTurns("the markup as text", func(turns []turn) bool { return len(turns) == 1 && turns[0].State == "completed" })
	if n := eval[int](b, `document.querySelectorAll(".prose img, .prose script, .prose [onerror]").length`); n != 0 {
		t.Errorf("%d elements came out of the model's markup: %s", n, eval[string](b, `document.querySelector(".prose").innerHTML`))
	}
	b.send("markdown")
	b.awaitTurns("two answers", func(turns []turn) bool { return len(turns) == 2 && turns[1].State == "completed" })
	if n := eval[int](b, `document.querySelectorAll(".turn:nth-child(2) .prose strong, .turn:nth-child(2) .prose li").length`); n != 3 {
		t.Errorf("%s", eval[string](b, `document.querySelector(".turn:nth-child(2) .prose").innerHTML`))
	}
	if n := eval[int](b, `document.querySelectorAll('.prose a[href^="javascript"], .prose img[src^="http"]').length`); n != 0 {
		t.Errorf("%s", eval[string](b, `document.querySelector(".turn:nth-child(2) .prose").innerHTML`))
	}
	b.send("draft")
	b.awaitDraft("onerror")
	if n := eval[int](b, `document.querySelectorAll(".draft img, .draft script, .draft b").length`); n != 0 {
		t.Errorf("the draft made %d elements", n)
	}
	b.send(bad)
	b.awaitTurns("the question's markup as text", func(turns []turn) bool { return len(turns) == 4 && turns[3].Question == bad })
	if eval[bool](b, "window.hit !== undefined") {
		t.Error("a script of the model ran")
	}
}

func answerLong(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	long := strings.Repeat("All work and no play makes a dull text.\n", 5000) // 200 KB
	d.model.script("long", say(long))
	d.model.script("rtl", say("שלום עולם"))
	b := d.open("/")
	b.send("long")
	b.awaitTurns("the whole answer", func(turns []turn) bool {
		return len(turns) == 1 && turns[0].State == "completed" && strings.Count(turns[0].Answer, "dull text.") == 5000
	})
	b.send("rtl")
	b.awaitTurns("the second answer", func(turns []turn) bool { return len(turns) == 2 && turns[1].State == "completed" })
	if dir := eval[string](b, `getComputedStyle(document.querySelector(".turn:nth-child(2) .prose")).direction`); dir != "rtl" {
		t.Errorf("the direction of Hebrew is %s", dir)
	}
	// Nothing is wider than a small screen, nor than a wide one.
	for _, width := range []int64{360, 1280, 3840} {
		b.do(chromedp.EmulateViewport(width, 900))
		if over := eval[bool](b, `document.documentElement.scrollWidth > innerWidth || document.querySelector(".scroll").scrollWidth > document.querySelector(".scroll").clientWidth`); over {
			t.Errorf("at %d pixels the page scrolls sideways", width)
		}
	}
}

func answerKeyboard(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything)
	d.model.script("q", say("A1"), say("A2"))
	d.model.script("bad", refuses("content_filter"))
	b := d.open("/")
	b.send("q")
	b.awaitAnswers("A1")
	b.send("bad")
	b.awaitTurns("a failure beside it", func(turns []turn) bool { return len(turns) == 2 && turns[1].State == "failed" })
	b.wantNames()
	// Tab leads from the composer through everything and reaches Regenerate.
	b.do(chromedp.Focus(chromedp.CSS("#message")))
	var reached []string
	for range 40 {
		b.press("Tab", "", 9, 8) // with Shift: backwards through the answers
		at := eval[string](b, `document.activeElement.dataset.does ?? document.activeElement.textContent.trim()`)
		reached = append(reached, at)
		if at == "regenerate" {
			break
		}
	}
	if !slices.Contains(reached, "regenerate") {
		t.Fatalf("Tab reached %q", reached)
	}
	b.enter()
	b.awaitTurns("the second answer", func(turns []turn) bool { return len(turns) == 2 && turns[0].Answer == "A2" })
	b.until("the end was announced", `document.getElementById("announce").textContent.includes("saved")`)
	b.click(0, "[data-does=task]")
	b.until("the task is drawn", `document.querySelector(".timeline") !== null`)
	b.wantNames()
}

// wantNames checks that the browser finds a name for whatever can be used.
func (b *tab) wantNames() {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		tree, err := cdp.Call(ctx, target, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err != nil {
			return err
		}
		seen := 0
		for _, node := range tree.Nodes {
			if node.Ignored || node.Role == nil {
				continue
			}
			switch role := strings.Trim(string(node.Role.Value), `"`); role {
			case "button", "link", "textbox", "image", "meter", "dialog", "navigation", "table":
				seen++
				if node.Name == nil || strings.Trim(string(node.Name.Value), `" `) == "" {
					b.t.Errorf("a %s without a name (node %v)", role, node.BackendDOMNodeID)
				}
			}
		}
		if seen < 5 {
			b.t.Errorf("only %d things to use were found", seen)
		}
		return nil
	}))
}

func answerDemo(t *testing.T, browser context.Context) {
	d := sitDown(t, browser, everything, "--model", "demo")
	b := d.open("/")
	b.send("What is a lease? A lease is a renewable time limit. A goat is an animal.")
	b.awaitTurns("an answer", func(turns []turn) bool {
		return len(turns) == 1 && turns[0].State == "completed" && turns[0].Answer != ""
	})
	b.until("it is labelled", `document.querySelector(".badge.demo")?.textContent === "Demo model"`)
}

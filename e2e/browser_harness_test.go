//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// patience is how long a browser test waits for anything: a loaded machine is
// slow, and a condition that holds at once costs nothing.
const patience = 60 * time.Second

// chromium gives the context of one running browser, shared by the subtests of
// a test; each has an origin of its own and so its own storage. Where no
// browser is found the test is skipped, unless the environment asks for one.
func chromium(t *testing.T) context.Context {
	t.Helper()
	path, err := findChromium()
	if err != nil {
		if strings.Contains(os.Getenv("ONEREPLY_TEST_REQUIRE"), "browser") {
			t.Fatalf("ONEREPLY_TEST_REQUIRE asks for a browser: %v", err)
		}
		t.Skipf("SKIPPED: %v; nothing of the page was tried", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, closeBrowser := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("starting %s: %v", path, err)
	}
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("closing the browser: %v", err)
		}
		closeBrowser()
	})
	return ctx
}

func findChromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no Chromium on this machine")
}

// tab is one tab with the page in it.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu         sync.Mutex
	complaints []string
}

// openTab opens a tab at a path of the page. What the page says in its console
// that is no expected network error fails the test: an exception, or a breach
// of the Content-Security-Policy.
func openTab(t *testing.T, browser context.Context, base, path string) *tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(browser)
	b := &tab{t: t, ctx: ctx, base: base}
	messages := chromedp.Console(ctx)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("opening a tab: %v", err)
	}
	var listening sync.WaitGroup
	listening.Go(func() {
		for m, err := range messages {
			if err != nil {
				return // the tab is closed
			}
			b.hear(m)
		}
	})
	t.Cleanup(func() {
		stop()
		listening.Wait()
		for _, c := range b.complaints {
			t.Errorf("the page complained: %s", c)
		}
	})
	// Several tabs are looked at at once, as on a wide desk.
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return err
	}))
	b.goTo(path)
	return b
}

func (b *tab) hear(m chromedp.ConsoleMessage) {
	if !m.IsException() && m.Source == "network" {
		return // a line that the test has cut
	}
	if m.IsException() || m.Type == "error" || m.Source == "security" {
		b.mu.Lock()
		b.complaints = append(b.complaints, m.String())
		b.mu.Unlock()
	}
}

// do carries out steps; none of them may take longer than patience.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%v\n%s", err, b.describe())
	}
}

// goTo loads a path of the page and waits until it can be used.
func (b *tab) goTo(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.base + path))
	b.ready()
}

func (b *tab) reload() {
	b.t.Helper()
	b.do(chromedp.Reload())
	b.ready()
}

func (b *tab) ready() {
	b.t.Helper()
	b.until("the page is drawn", `document.querySelector("#view > *") !== null && !document.querySelector(".loading")`)
}

// beforeLoad runs a script in every document from now on, before its own.
func (b *tab) beforeLoad(script string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return err
	}))
}

// eval gives the JSON value of an expression.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := tryEval[T](b, expression)
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

func tryEval[T any](b *tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	var value T
	raw, err := chromedp.Run(ctx, chromedp.Evaluate[string]("JSON.stringify("+expression+") ?? 'null'"))
	if err != nil {
		return value, err
	}
	return value, json.Unmarshal([]byte(raw), &value)
}

// until waits until an expression is true, across reloads.
func (b *tab) until(what, expression string) {
	b.t.Helper()
	holds := func() bool {
		ok, err := tryEval[bool](b, "Boolean("+expression+")")
		return err == nil && ok // a page being replaced has no answer yet
	}
	if !soon(patience, holds) {
		b.t.Fatalf("not within %v: %s\n%s", patience, what, b.describe())
	}
}

// turn is what a person sees of a question and its answer.
type turn struct {
	State    string `json:"state"`
	Question string `json:"question"`
	Answer   string `json:"answer"`   // the saved answer shown
	Siblings string `json:"siblings"` // such as 2/3
	Draft    string `json:"draft"`
	Delivery string `json:"delivery"`
	Status   string `json:"status"`
	Trouble  string `json:"trouble"`
}

const turnsScript = `[...document.querySelectorAll(".turn")].filter((t) => !t.hidden).map((t) => {
	const text = (s) => { const e = t.querySelector(s); return e && !e.hidden && !e.closest("[hidden]") ? e.textContent.trim() : ""; };
	return { state: t.dataset.state, question: text(".bubble"), answer: text(".prose"), siblings: text(".count"), draft: text(".draft"),
		delivery: text(".delivery"), status: text(".status"), trouble: text(".trouble") };
})`

// awaitTurns waits until the turns are as asked for.
func (b *tab) awaitTurns(what string, holds func([]turn) bool) []turn {
	b.t.Helper()
	var last []turn
	if !soon(patience, func() bool {
		turns, err := tryEval[[]turn](b, turnsScript)
		if err == nil {
			last = turns
		}
		return err == nil && holds(turns)
	}) {
		b.t.Fatalf("not within %v: %s\n%s", patience, what, b.describe())
	}
	return last
}

// awaitAnswers waits until each turn in order shows its saved answer, and no
// turn more.
func (b *tab) awaitAnswers(answers ...string) {
	b.t.Helper()
	b.awaitTurns(fmt.Sprintf("answers %q", answers), func(turns []turn) bool {
		if len(turns) != len(answers) {
			return false
		}
		for i, turn := range turns {
			if turn.State != "completed" || turn.Answer != answers[i] {
				return false
			}
		}
		return true
	})
}

func (b *tab) describe() string {
	turns, err := tryEval[[]turn](b, turnsScript)
	view, _ := tryEval[string](b, `location.pathname + "\n" + document.getElementById("view").innerText`)
	return fmt.Sprintf("turns: %+v (%v)\nview: %s", turns, err, view)
}

// write puts text into the composer as an input method does.
func (b *tab) write(text string) {
	b.t.Helper()
	b.do(chromedp.Focus(chromedp.CSS("#message")), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, input.InsertText, input.InsertTextParams{Text: text})
		return err
	}))
}

// press presses a key as a keyboard does. Text is what the key types when
// nothing prevents it.
func (b *tab) press(key, text string, code, modifiers int64) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		down := input.DispatchKeyEventTypeKeyDown
		if text == "" {
			down = input.DispatchKeyEventTypeRawKeyDown
		}
		for _, e := range []input.DispatchKeyEventParams{
			{Type: down, Key: key, Code: key, Text: text, WindowsVirtualKeyCode: code, Modifiers: modifiers},
			{Type: input.DispatchKeyEventTypeKeyUp, Key: key, Code: key, WindowsVirtualKeyCode: code, Modifiers: modifiers},
		} {
			if _, err := cdp.Call(ctx, target, input.DispatchKeyEvent, e); err != nil {
				return err
			}
		}
		return nil
	}))
}

func (b *tab) enter() { b.t.Helper(); b.press("Enter", "\r", 13, 0) }

// send writes a text and presses Enter.
func (b *tab) send(text string) {
	b.t.Helper()
	b.write(text)
	b.enter()
}

// click clicks what a selector finds; within the n-th turn from 0, when n is
// not negative.
func (b *tab) click(n int, selector string) {
	b.t.Helper()
	b.do(chromedp.Click(b.selector(n, selector)))
}

// doubleClick clicks twice in one place, as a hand does: the second click says
// that it is the second.
func (b *tab) doubleClick(n int, selector string) {
	b.t.Helper()
	b.do(chromedp.ScrollIntoView(b.selector(n, selector)))
	at := eval[[2]float64](b, fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`, b.selector(n, selector)))
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for count := int64(1); count <= 2; count++ {
			for _, kind := range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased} {
				e := input.DispatchMouseEventParams{Type: kind, X: at[0], Y: at[1], Button: input.MouseButtonLeft, ClickCount: count}
				if _, err := cdp.Call(ctx, target, input.DispatchMouseEvent, e); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

func (b *tab) selector(n int, selector string) chromedp.CSS {
	if n >= 0 {
		selector = ".turn:nth-child(" + strconv.Itoa(n+1) + ") " + selector
	}
	return chromedp.CSS(selector)
}

// clickText clicks the button with a text.
func (b *tab) clickText(text string) {
	b.t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll("button, a")].find((e) => e.checkVisibility() && e.textContent.trim() === %q)`, text)
	b.until("there is a button "+text, find)
	mark := fmt.Sprintf(`(%s.dataset.test = "here", true)`, find)
	eval[bool](b, mark)
	b.do(chromedp.Click(chromedp.CSS(`[data-test=here]`)))
	if _, err := tryEval[bool](b, `(document.querySelectorAll("[data-test]").forEach((e) => delete e.dataset.test), true)`); err != nil {
		b.t.Logf("the page was left by the click: %v", err)
	}
}

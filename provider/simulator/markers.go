package simulator

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var marker = regexp.MustCompile(`(?s)\[\[(.*?)\]\]`)

// ParsePlan reads the markers of a prompt for the n-th request with its key (1
// is the first). Without markers it is a plain answer. "N:" before a marker
// keeps it for the n-th request, "N+:" for the n-th and all later ones.
//
//	[[key a]]              counts this prompt's requests under "a"; else the whole prompt is the key
//	[[say text]]           answers with the text
//	[[think text]]         thinks first
//	[[thinking]]           only thinks
//	[[empty]] [[blank]]    answers with nothing, or white space
//	[[nul]]                answers with a NUL in the text
//	[[big 10]]             answers with 10 MiB
//	[[refusal text]]       declines in the field for refusals
//	[[filter]] [[length]]  ends for that reason
//	[[usage 10 20]]        reports so many tokens in and out
//	[[no-done]] [[no-finish]]  leaves out one of the two end marks
//	[[no-end]] [[no-end 3]]    leaves out both, after all or 3 words
//	[[delay 2s]] [[slow 50ms]] waits before the answer, or between words
//	[[status 429 code]]    refuses with a status, and a code if given
//	[[retry-after 2]]      sends that header along
//	[[redirect 307]]       points elsewhere
//	[[html]]               answers 200 with a web page
//	[[json {}]]            answers 200 with that JSON in place of a stream
//	[[cut before]] [[cut after 3]]  closes the connection; likewise reset and hang
//	[[error-after 3 code]]  an error event after 3 words
//	[[broken-json 3]]      an event that is no JSON after 3 words
//	[[toolcall]] [[toolcall cut]]  asks for a tool, with whole or cut arguments
//	[[pause]]              ends in the middle of a turn, as Anthropic may
//	[[failed 3 code]]      fails for good after 3 words
//	[[cancelled 3]]        is cancelled at the provider after 3 words
//	[[queued]]             never begins (in the background)
//	[[missing 2]]          two lookups find nothing at first; without a number none ever does
//	[[no-resume]]          a lookup cannot be streamed
//
// Any other marker is an error, so that a slip of the pen fails loudly.
func ParsePlan(prompt string, n int) (Plan, error) {
	plan := Plan{Finish: "stop", After: Everything}
	said := false
	for _, m := range marker.FindAllStringSubmatch(prompt, -1) {
		text, applies, err := numbered(m[1], n)
		if err != nil {
			return plan, err
		}
		if !applies {
			continue
		}
		verb, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
		set, known := verbs[verb]
		if !known {
			return plan, fmt.Errorf("unknown marker [[%s]]", m[1])
		}
		if err := set(&plan, strings.TrimSpace(rest)); err != nil {
			return plan, fmt.Errorf("marker [[%s]]: %w", m[1], err)
		}
		switch verb {
		case "say", "empty", "blank", "nul", "big", "thinking", "refusal":
			said = true
		}
	}
	if !said {
		plan.Text = answerTo(prompt)
	}
	return plan, nil
}

// answerTo is what is said when nothing is asked for.
func answerTo(prompt string) string {
	bare := []rune(strings.Join(strings.Fields(marker.ReplaceAllString(prompt, " ")), " "))
	if len(bare) > 80 {
		bare = append(bare[:80], '…')
	}
	return "This is the simulator's scripted answer to: " + string(bare)
}

var ordinal = regexp.MustCompile(`^\s*(\d+)(\+?):(.*)$`)

// numbered takes off "N:" or "N+:" and says whether the marker is for request n.
func numbered(text string, n int) (rest string, applies bool, err error) {
	m := ordinal.FindStringSubmatch(text)
	if m == nil {
		return text, true, nil
	}
	from, err := strconv.Atoi(m[1])
	if err != nil {
		return "", false, fmt.Errorf("marker [[%s]]: %w", text, err)
	}
	return m[3], n == from || m[2] == "+" && n > from, nil
}

func keyOf(prompt string) string {
	for _, m := range marker.FindAllStringSubmatch(prompt, -1) {
		if key, ok := strings.CutPrefix(strings.TrimSpace(m[1]), "key "); ok {
			return strings.TrimSpace(key)
		}
	}
	return prompt
}

var verbs = map[string]func(p *Plan, rest string) error{
	"key":         func(*Plan, string) error { return nil },
	"say":         func(p *Plan, rest string) error { p.Text = rest; return nil },
	"think":       func(p *Plan, rest string) error { p.Thinking = rest; return nil },
	"thinking":    func(p *Plan, _ string) error { p.Thinking = "let me see, and see again"; return nil },
	"empty":       func(p *Plan, _ string) error { p.Text = ""; return nil },
	"blank":       func(p *Plan, _ string) error { p.Text = " \n\t "; return nil },
	"nul":         func(p *Plan, _ string) error { p.Text = "before\x00after"; return nil },
	"refusal":     func(p *Plan, rest string) error { p.Refusal = rest; return nil },
	"filter":      func(p *Plan, _ string) error { p.Finish = "content_filter"; return nil },
	"length":      func(p *Plan, _ string) error { p.Finish = "length"; return nil },
	"no-done":     func(p *Plan, _ string) error { p.NoDone = true; return nil },
	"pause":       func(p *Plan, _ string) error { p.Finish = "pause"; return nil },
	"queued":      func(p *Plan, _ string) error { p.Queued = true; return nil },
	"no-resume":   func(p *Plan, _ string) error { p.NoResume = true; return nil },
	"no-finish":   func(p *Plan, _ string) error { p.NoFinish = true; return nil },
	"retry-after": func(p *Plan, rest string) error { p.RetryAfter = rest; return nil },
	"html": func(p *Plan, _ string) error {
		p.Fault, p.ContentType, p.Body = Raw, "text/html; charset=utf-8", "<!doctype html><title>Sign in</title><h1>Please sign in</h1>"
		return nil
	},
	"json": func(p *Plan, rest string) error {
		p.Fault, p.ContentType, p.Body = Raw, "application/json", rest
		return nil
	},
	"big": func(p *Plan, rest string) error {
		mib, err := strconv.Atoi(rest)
		if err != nil || mib < 1 || mib > 1024 {
			return fmt.Errorf("want MiB from 1 to 1024")
		}
		p.Text = strings.Repeat(strings.Repeat("0123456789abcde", 4369)+" ", mib*16)
		return nil
	},
	"usage": func(p *Plan, rest string) error {
		if _, err := fmt.Sscanf(rest, "%d %d", &p.Usage[0], &p.Usage[1]); err != nil {
			return fmt.Errorf("want two numbers: %w", err)
		}
		return nil
	},
	"delay": func(p *Plan, rest string) (err error) { p.Delay, err = time.ParseDuration(rest); return err },
	"slow":  func(p *Plan, rest string) (err error) { p.Pace, err = time.ParseDuration(rest); return err },
	"status": func(p *Plan, rest string) error {
		number, code, _ := strings.Cut(rest, " ")
		status, err := strconv.Atoi(number)
		if err != nil || status < 200 || status > 599 {
			return fmt.Errorf("want a status from 200 to 599")
		}
		p.Fault, p.Status, p.Code = Status, status, strings.TrimSpace(code)
		return nil
	},
	"redirect": func(p *Plan, rest string) error {
		status, err := strconv.Atoi(rest)
		if err != nil || status < 300 || status > 399 {
			return fmt.Errorf("want a status from 300 to 399")
		}
		p.Fault, p.Status = Redirect, status
		return nil
	},
	"cut":    func(p *Plan, rest string) error { return p.at(Cut, rest) },
	"reset":  func(p *Plan, rest string) error { return p.at(Reset, rest) },
	"hang":   func(p *Plan, rest string) error { return p.at(Hang, rest) },
	"no-end": func(p *Plan, rest string) error { return p.afterWords(NoEnd, rest) },
	"error-after": func(p *Plan, rest string) error {
		words, code, _ := strings.Cut(rest, " ")
		p.Code = strings.TrimSpace(code)
		return p.afterWords(ErrorEvent, words)
	},
	"broken-json": func(p *Plan, rest string) error { return p.afterWords(BrokenJSON, rest) },
	"cancelled":   func(p *Plan, rest string) error { return p.afterWords(Cancelled, rest) },
	"failed": func(p *Plan, rest string) error {
		words, code, _ := strings.Cut(rest, " ")
		p.Code = strings.TrimSpace(code)
		return p.afterWords(Failed, words)
	},
	"missing": func(p *Plan, rest string) error {
		if p.Missing = Everything; rest == "" {
			return nil
		}
		n, err := strconv.Atoi(rest)
		if err != nil || n < 1 {
			return fmt.Errorf("want a number of lookups, 1 or more")
		}
		p.Missing = n
		return nil
	},
	"toolcall": func(p *Plan, rest string) error {
		p.Fault, p.After = ToolCall, 0
		if rest == "cut" {
			p.Fault = CutTool
		}
		return nil
	},
}

// at reads "before", "after N", or nothing, which is before.
func (p *Plan) at(f Fault, rest string) error {
	if rest == "" || rest == "before" {
		p.Fault, p.After = f, Before
		return nil
	}
	words, ok := strings.CutPrefix(rest, "after ")
	if !ok {
		return fmt.Errorf("want before, or after and a number of words")
	}
	return p.afterWords(f, words)
}

func (p *Plan) afterWords(f Fault, words string) error {
	p.Fault, p.After = f, Everything
	if words == "" {
		return nil
	}
	n, err := strconv.Atoi(words)
	if err != nil || n < 0 {
		return fmt.Errorf("want a number of words, 0 or more")
	}
	p.After = n
	return nil
}

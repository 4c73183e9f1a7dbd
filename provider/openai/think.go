package openai

import "strings"

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// thinkFilter takes a leading <think> block out of a stream of text. Servers
// that do not parse the templates of reasoning models leave it there.
type thinkFilter struct {
	state thinkState
	held  string
}

type thinkState int

const (
	beforeThink thinkState = iota // nothing but white space has come
	inThink
	afterThink
	plain
)

// write returns what of the text so far can be shown.
func (f *thinkFilter) write(delta string) string {
	if f.state == plain {
		return delta
	}
	f.held += delta
	if f.state == beforeThink {
		text := strings.TrimLeft(f.held, " \t\r\n")
		switch {
		case strings.HasPrefix(text, thinkOpen):
			f.state, f.held = inThink, text[len(thinkOpen):]
		case strings.HasPrefix(thinkOpen, text):
			return "" // may still become one
		default:
			return f.show(f.held)
		}
	}
	if f.state == inThink {
		at := strings.Index(f.held, thinkClose)
		if at < 0 {
			f.held = f.held[max(0, len(f.held)-len(thinkClose)+1):]
			return ""
		}
		f.state, f.held = afterThink, f.held[at+len(thinkClose):]
	}
	if text := strings.TrimLeft(f.held, " \t\r\n"); text != "" {
		return f.show(text)
	}
	f.held = ""
	return ""
}

func (f *thinkFilter) show(text string) string {
	f.state, f.held = plain, ""
	return text
}

// rest returns what was held back and is text after all, now that no more comes.
func (f *thinkFilter) rest() string {
	if f.state == beforeThink {
		return f.show(f.held)
	}
	return ""
}

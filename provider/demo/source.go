package demo

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/onereply/onereply/provider"
)

// source is what an answer is made from.
type source struct {
	question string // may be empty: then the text itself is all there is
	text     string // may be empty: then there is nothing to answer from
	earlier  bool   // the text came in an earlier message
}

// sourceOf takes the last message apart, and finds the text in an earlier one
// where the last only asks.
func sourceOf(messages []provider.Message) source {
	var asked []string
	for _, m := range messages {
		if m.Role == provider.User {
			asked = append(asked, m.Text)
		}
	}
	if len(asked) == 0 {
		return source{}
	}
	question, text := separate(asked[len(asked)-1])
	if text != "" {
		return source{question: question, text: text}
	}
	for i := len(asked) - 2; i >= 0; i-- {
		if _, text := separate(asked[i]); text != "" {
			return source{question: question, text: text, earlier: true}
		}
	}
	return source{question: question}
}

var paragraphs = regexp.MustCompile(`\n[ \t\r]*\n`)

// separate tells the question of a message from the text pasted with it: a first
// or last paragraph, line or sentence that asks. A short message without
// anything else to quote is a question alone.
func separate(message string) (question, text string) {
	message = strings.TrimSpace(strings.ReplaceAll(message, "\r\n", "\n"))
	if question, text, ok := leadIn(message); ok {
		return question, text
	}
	for _, parts := range [][]string{paragraphs.Split(message, -1), strings.Split(message, "\n")} {
		if len(parts) < 2 {
			continue
		}
		first, last := strings.TrimSpace(parts[0]), strings.TrimSpace(parts[len(parts)-1])
		switch {
		case asks(first):
			return first, strings.TrimSpace(message[len(parts[0]):])
		case asks(last):
			return last, strings.TrimSpace(message[:len(message)-len(parts[len(parts)-1])])
		}
	}
	return separateSentences(message)
}

var colon = regexp.MustCompile(`:\s|：`)

// leadIn takes off a request that a colon parts from the text it is about, as in
// "Summarize: The board met. It chose Oslo.", where the first sentence is no part
// of the request.
func leadIn(message string) (question, text string, ok bool) {
	line, _, _ := strings.Cut(message, "\n")
	at := colon.FindStringIndex(line)
	if at == nil {
		return "", "", false
	}
	lead, after := strings.TrimSpace(line[:at[0]]), strings.TrimSpace(message[at[1]:])
	if after == "" || len(cut(lead)) != 1 || !asks(lead) || !imperative.MatchString(lead) && !summaryWords.MatchString(lead) {
		return "", "", false
	}
	// "List these: costs, dates and people?" goes on asking.
	if rest := cut(strings.TrimSpace(line[at[1]:])); len(rest) > 0 && isQuestion(rest[0]) {
		return "", "", false
	}
	return lead, after, true
}

// separateSentences does the same inside one paragraph.
func separateSentences(message string) (question, text string) {
	all := split(message)
	var questions, rest []string
	for i, s := range all {
		// A question in the middle of a text is part of it.
		if atEdge := i < 2 || i == len(all)-1; atEdge && asks(s.text) {
			questions = append(questions, s.text)
			continue
		}
		rest = append(rest, s.text)
	}
	if lead, after, ok := strings.Cut(message, ":"); ok && len(questions) == 0 && asks(lead+":") {
		return strings.TrimSpace(lead), strings.TrimSpace(after)
	}
	text = strings.Join(rest, "\n")
	switch {
	case len(rest) >= 2, len(rest) == 1 && (len(questions) > 0 || utf8.RuneCountInString(text) >= 120):
		return strings.Join(questions, " "), text
	}
	return message, ""
}

// longestQuestion is how many characters may still be a question.
const longestQuestion = 400

// asks reports whether a piece of a message reads like what the person wants,
// and not like the text they want it from: one line that asks, perhaps after a
// sentence that leads up to it.
func asks(part string) bool {
	if utf8.RuneCountInString(part) > longestQuestion || strings.Contains(part, "\n") {
		return false
	}
	if isRequest(part) {
		return true
	}
	return isQuestion(part) && len(cut(part)) <= 3
}

var (
	questionEnd  = regexp.MustCompile(`[?？]["'”’)\]」』]*\s*$|(吗|呢|か)[。.]?\s*$`)
	requestStart = regexp.MustCompile(`(?i)^\W*(please\s+|can you\s+|could you\s+|now\s+|then\s+|and\s+)*(summari[sz]e|sum up|list|explain|tell me|give me|find|extract|show|name|describe|compare|what|who|when|where|which|why|how|tl;?dr|key (points|decisions|dates)|main points|answer|quote|fasse|zusammenfassung|nenne|résume|resume|liste|explique|resumen|explica|enumera)\b`)
	requestCJK   = regexp.MustCompile(`^(请|請|总结|總結|概括|列出|说明|要約|まとめ|教えて|誰|谁|何|什么|为什么|いつ|どこ|なぜ)|(要約して|まとめて|教えて)`)
)

func isQuestion(s string) bool { return questionEnd.MatchString(s) }

func isRequest(s string) bool {
	if requestCJK.MatchString(s) {
		return utf8.RuneCountInString(s) <= 80
	}
	// "What we decided is final." is a statement; "What we decided:" asks for it.
	return requestStart.MatchString(s) && utf8.RuneCountInString(s) <= 200 && (!strings.HasSuffix(s, ".") || imperative.MatchString(s))
}

var imperative = regexp.MustCompile(`(?i)^\W*(please\s+|can you\s+|could you\s+|now\s+|then\s+|and\s+)*(summari[sz]e|sum up|list|explain|tell me|give me|find|extract|show|name|describe|compare|answer|quote)\b`)

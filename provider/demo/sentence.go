package demo

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// sentence is one piece of the text that can be quoted.
type sentence struct {
	text    string
	words   []string
	heading bool // a short line above others, which lends its weight to them
	asks    bool
}

// scrap reports whether a sentence has too few words to say anything alone.
func (s sentence) scrap() bool { return len(s.words) < 3 }

// longestLine bounds a paragraph put together from lines, and what of a sentence
// is searched for signs, so that the work stays in proportion to the text.
const longestLine = 4000

// maxSentences bounds the work on a very long text; what lies beyond is not read.
const maxSentences = 20_000

// split cuts a text into sentences: at full stops and their kin, and at line
// ends where a line is an item, a heading or a row.
func split(text string) []sentence {
	var out []sentence
	lines := join(strings.Split(proseOf(text), "\n"))
	for _, line := range lines {
		bare := bullet(line)
		if bare == "" {
			continue
		}
		parts := cut(bare)
		for _, part := range parts {
			out = append(out, sentence{
				text: part, words: words(part), asks: isQuestion(part),
				heading: len(parts) == 1 && looksLikeHeading(line, part),
			})
			if len(out) == maxSentences {
				return out
			}
		}
	}
	return out
}

// join puts back together the lines of a paragraph that was wrapped by hand: a
// long line without an end, and a next one that goes on in lower case.
func join(lines []string) []string {
	var out []string
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if n := len(out) - 1; n >= 0 && line != "" && len(out[n]) >= 40 && len(out[n]) < longestLine && !ends(out[n]) && line == bullet(line) && continues(line, out[n]) {
			out[n] += " " + line
			continue
		}
		out = append(out, line)
	}
	return out
}

func continues(line, before string) bool {
	r, _ := utf8.DecodeRuneInString(line)
	return unicode.IsLower(r) || unicode.IsDigit(r) || r == '(' || len(before) >= 60 && !strings.HasPrefix(line, "#") && unicode.IsLetter(r) && !looksLikeHeading(line, line)
}

func ends(line string) bool {
	r, _ := utf8.DecodeLastRuneInString(strings.TrimRight(line, `"'”’)]»」』`))
	return strings.ContainsRune(".!?…:;。！？", r)
}

// bullet takes a list's or heading's mark off a line.
func bullet(line string) string {
	line = strings.TrimSpace(line)
	bare := strings.TrimLeft(line, "#>")
	for _, mark := range []string{"- [ ] ", "- [x] ", "- ", "* ", "+ ", "• ", "– ", "— "} {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(bare), mark); ok {
			return strings.TrimSpace(rest)
		}
	}
	digits := strings.TrimLeft(bare, "0123456789")
	if n := len(bare) - len(digits); n > 0 && n <= 3 && (strings.HasPrefix(digits, ". ") || strings.HasPrefix(digits, ") ")) {
		return strings.TrimSpace(digits[2:])
	}
	if strings.Trim(bare, "-=*_| \t") == "" {
		return "" // a rule between parts
	}
	return strings.TrimSpace(bare)
}

func looksLikeHeading(line, text string) bool {
	return strings.HasPrefix(line, "#") ||
		utf8.RuneCountInString(text) <= 60 && (strings.HasSuffix(text, ":") || !ends(text) && line == text && len(words(text)) <= 5 && !strings.ContainsAny(text, "|\t,;"))
}

// cut splits a line at the ends of its sentences.
func cut(line string) []string {
	var out []string
	runes := []rune(line)
	from := 0
	for i := 0; i < len(runes); i++ {
		if !strings.ContainsRune(".!?…。！？", runes[i]) {
			continue
		}
		end := i + 1
		for end < len(runes) && strings.ContainsRune(`.!?…。！？"'”’)]»」』`, runes[end]) {
			end++
		}
		wide := strings.ContainsRune("。！？", runes[i])
		if end < len(runes) && !wide && (!unicode.IsSpace(runes[end]) || runes[i] == '.' && abbreviated(runes[from:i], runes[end:])) {
			continue
		}
		if part := strings.TrimSpace(string(runes[from:end])); part != "" {
			out = append(out, part)
		}
		from, i = end, end-1
	}
	if part := strings.TrimSpace(string(runes[from:])); part != "" {
		out = append(out, part)
	}
	return out
}

// abbreviated reports whether a full stop after before belongs to a word, as in
// "Dr.", "e.g.", "14. April" or "J. Smith", or the sentence goes on in lower case.
func abbreviated(before, after []rune) bool {
	at := len(before)
	for at > 0 && !unicode.IsSpace(before[at-1]) && before[at-1] != '(' {
		at--
	}
	last := strings.ToLower(string(before[at:]))
	if digits := strings.Trim(last, "0123456789"); digits == "" && len(last) <= 2 && len(last) > 0 {
		return true // "14. April"
	}
	if abbreviations[last] || utf8.RuneCountInString(last) == 1 && unicode.IsUpper(before[at]) {
		return true
	}
	for _, r := range after {
		if !unicode.IsSpace(r) {
			return unicode.IsLower(r)
		}
	}
	return false
}

// abbreviations are words that a full stop belongs to.
var abbreviations = map[string]bool{
	"mr": true, "mrs": true, "ms": true, "dr": true, "prof": true, "st": true, "jr": true, "sr": true, "vs": true, "etc": true, "e.g": true,
	"i.e": true, "approx": true, "no": true, "nos": true, "inc": true, "ltd": true, "co": true, "corp": true, "dept": true, "fig": true,
	"p.m": true, "a.m": true, "u.s": true, "jan": true, "feb": true, "mar": true, "apr": true, "jun": true, "jul": true, "aug": true,
	"sep": true, "sept": true, "oct": true, "nov": true, "dec": true, "bzw": true, "z.b": true, "ca": true, "nr": true, "str": true,
}

// quote is a sentence as it is shown: one line, not too long.
func quote(text string) string {
	const longest = 420
	text = strings.Join(strings.Fields(text), " ")
	runes := []rune(text)
	if len(runes) <= longest {
		return text
	}
	at := longest
	for at > longest/2 && !unicode.IsSpace(runes[at]) && !spaceless(runes[at]) {
		at--
	}
	return strings.TrimSpace(string(runes[:at])) + " …"
}

package demo

import (
	"strings"
	"unicode"
)

// words returns the words of a text in the form in which they are compared:
// lower case, without endings, without stop words. Scripts that put no spaces
// between words give overlapping pairs of characters.
func words(text string) []string {
	var out []string
	var word, run []rune
	flush := func() {
		if len(word) > 0 {
			if w := string(word); !stop[w] {
				out = append(out, stem(w))
			}
			word = word[:0]
		}
		out = append(out, pairs(run)...)
		run = run[:0]
	}
	for _, r := range text {
		switch {
		case spaceless(r):
			if len(word) > 0 {
				flush()
			}
			run = append(run, r)
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			if len(run) > 0 {
				flush()
			}
			word = append(word, unicode.ToLower(r))
		case (r == '\'' || r == '’') && len(word) > 0:
			// "team's" is "team" and an ending that stem takes off.
			word = append(word, '\'')
		default:
			flush()
		}
	}
	flush()
	return out
}

func spaceless(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer)
}

// pairs are the neighbours in a run of such characters; those of Hiragana alone
// are grammar and left out.
func pairs(run []rune) []string {
	if len(run) == 1 && !unicode.Is(unicode.Hiragana, run[0]) {
		return []string{string(run)}
	}
	var out []string
	for i := 0; i+1 < len(run); i++ {
		pair := string(run[i : i+2])
		if unicode.Is(unicode.Hiragana, run[i]) && unicode.Is(unicode.Hiragana, run[i+1]) || stop[pair] {
			continue
		}
		out = append(out, pair)
	}
	return out
}

// stem takes the common endings off, enough for "decisions" to find "decided".
func stem(w string) string {
	w, _, _ = strings.Cut(w, "'")
	if len(w) <= 4 {
		if len(w) == 4 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
			return w[:3]
		}
		return w
	}
	for _, e := range endings {
		if root, ok := strings.CutSuffix(w, e.end); ok && len(root) >= 3 {
			w = root + e.put
			break
		}
	}
	if len(w) > 4 {
		w = strings.TrimSuffix(w, "e")
	}
	return w
}

var endings = []struct{ end, put string }{
	{"isions", "id"}, {"ision", "id"}, {"ments", ""}, {"ment", ""}, {"ations", ""}, {"ation", ""}, {"tions", "t"}, {"tion", "t"},
	{"ities", ""}, {"ity", ""}, {"ies", "y"}, {"ied", "y"}, {"ings", ""}, {"ing", ""}, {"edly", ""}, {"ed", ""}, {"ly", ""},
	{"sses", "ss"}, {"ss", "ss"}, {"es", ""}, {"ers", ""}, {"er", ""}, {"s", ""},
}

// stop are words that say little: grammar, and the words of asking.
var stop = map[string]bool{
	"a": true, "about": true, "above": true, "after": true, "again": true, "all": true, "also": true, "am": true, "an": true, "and": true,
	"any": true, "are": true, "as": true, "asked": true, "at": true, "be": true, "because": true, "been": true, "before": true, "being": true,
	"below": true, "between": true, "both": true, "but": true, "by": true, "can": true, "could": true, "did": true, "do": true, "does": true,
	"doing": true, "done": true, "don": true, "down": true, "during": true, "each": true, "few": true, "for": true, "from": true,
	"further": true, "get": true, "give": true, "given": true, "go": true, "had": true, "happen": true, "happened": true, "happens": true, "has": true, "have": true, "having": true, "he": true,
	"her": true, "here": true, "hers": true, "him": true, "his": true, "how": true, "i": true, "if": true, "in": true, "into": true,
	"is": true, "isn": true, "it": true, "its": true, "itself": true, "just": true, "know": true, "let": true, "like": true, "ll": true,
	"many": true, "may": true, "me": true, "might": true, "more": true, "most": true, "much": true, "must": true, "my": true, "no": true,
	"nor": true, "not": true, "now": true, "of": true, "off": true, "on": true, "once": true, "only": true, "or": true, "other": true,
	"our": true, "ours": true, "out": true, "over": true, "own": true, "please": true, "re": true, "same": true, "say": true, "said": true,
	"see": true, "shall": true, "she": true, "should": true, "show": true, "so": true, "some": true, "such": true, "tell": true, "text": true,
	"than": true, "that": true, "the": true, "their": true, "theirs": true, "them": true, "then": true, "there": true, "these": true,
	"they": true, "this": true, "those": true, "through": true, "to": true, "too": true, "under": true, "until": true, "up": true, "us": true,
	"ve": true, "very": true, "was": true, "we": true, "were": true, "what": true, "when": true, "where": true, "which": true, "while": true,
	"who": true, "whom": true, "whose": true, "why": true, "will": true, "with": true, "would": true, "you": true, "your": true,
	"yours": true, "following": true, "summarize": true, "summarise": true, "summary": true, "sentence": true, "paragraph": true,
	"article": true, "document": true, "message": true, "main": true, "key": true, "points": true, "point": true, "list": true,
	"explain": true, "find": true, "mean": true, "means": true, "der": true, "die": true, "das": true, "den": true, "dem": true, "des": true,
	"ein": true, "eine": true, "einer": true, "eines": true, "einem": true, "einen": true, "und": true, "oder": true, "aber": true,
	"ist": true, "sind": true, "war": true, "waren": true, "wird": true, "werden": true, "hat": true, "haben": true, "ich": true, "du": true,
	"er": true, "sie": true, "es": true, "wir": true, "ihr": true, "nicht": true, "kein": true, "keine": true, "mit": true, "von": true,
	"zu": true, "zum": true, "zur": true, "im": true, "auf": true, "aus": true, "bei": true, "nach": true, "wie": true, "wer": true,
	"wo": true, "wann": true, "warum": true, "welche": true, "welcher": true, "welches": true, "über": true, "le": true, "la": true,
	"les": true, "l": true, "un": true, "une": true, "de": true, "d": true, "et": true, "ou": true, "mais": true, "est": true, "sont": true,
	"était": true, "ont": true, "il": true, "elle": true, "ils": true, "elles": true, "nous": true, "vous": true, "je": true, "tu": true,
	"ne": true, "pas": true, "avec": true, "pour": true, "par": true, "sur": true, "dans": true, "au": true, "aux": true, "ce": true,
	"cette": true, "ces": true, "que": true, "qui": true, "quoi": true, "quand": true, "où": true, "pourquoi": true, "comment": true,
	"quel": true, "quelle": true, "quels": true, "quelles": true, "el": true, "los": true, "las": true, "unos": true, "unas": true, "y": true,
	"o": true, "pero": true, "son": true, "era": true, "fue": true, "ha": true, "han": true, "yo": true, "él": true, "ella": true,
	"ellos": true, "nosotros": true, "con": true, "por": true, "para": true, "sobre": true, "en": true, "al": true, "este": true,
	"esta": true, "estos": true, "estas": true, "qué": true, "quién": true, "cuándo": true, "dónde": true, "cómo": true, "cuál": true,
	"cuáles": true, "什么": true, "什麼": true, "怎么": true, "怎麼": true, "哪些": true, "哪里": true, "为什": true, "為什": true, "多少": true, "是谁": true,
	"请问": true, "請問": true, "这个": true, "這個": true, "那个": true, "我们": true, "我們": true, "他们": true, "可以": true, "何で": true, "何が": true,
	"何を": true, "何の": true,
}

func set(list []string) map[string]bool {
	out := map[string]bool{}
	for _, w := range list {
		out[w] = true
	}
	return out
}

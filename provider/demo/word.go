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

var stop = set(strings.Fields(`
a about above after again all also am an and any are as asked at be because been before being below between both but by can could
did do does doing done don down during each few for from further get give given go had has have having he her here hers him his how i
if in into is isn it its itself just know let like ll many may me might more most much must my no nor not now of off on once only or
other our ours out over own please re same say said see shall she should show so some such tell text than that the their theirs them
then there these they this those through to too under until up us ve very was we were what when where which while who whom whose why
will with would you your yours following summarize summarise summary sentence paragraph article document message main key points point
list explain find mean means
der die das den dem des ein eine einer eines einem einen und oder aber ist sind war waren wird werden hat haben ich du er sie es wir ihr
nicht kein keine mit von zu zum zur im in am an auf aus bei nach wie was wer wo wann warum welche welcher welches über
le la les l un une des du de d et ou mais est sont était ont a il elle ils elles nous vous je tu ne pas avec pour par sur dans au aux ce
cette ces que qui quoi quand où pourquoi comment quel quelle quels quelles
el los las unos unas y o pero es son era fue ha han yo él ella ellos nosotros no con por para sobre en al este esta estos estas qué quién
cuándo dónde cómo cuál cuáles
什么 什麼 怎么 怎麼 哪些 哪里 为什 為什 多少 是谁 请问 請問 这个 這個 那个 我们 我們 他们 可以 何で 何が 何を 何の
`))

func set(list []string) map[string]bool {
	out := map[string]bool{}
	for _, w := range list {
		out[w] = true
	}
	return out
}

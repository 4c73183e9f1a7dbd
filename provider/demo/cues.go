package demo

import (
	"regexp"
	"strings"
)

// wish is what kind of answer a question is after: which sentences to prefer,
// and how many of them.
type wish struct {
	summary bool // of the whole, whatever its words
	many    bool // several, as a list
	cues    []cue
}

// cue is a sign of what a question asks for, and of a sentence that has it.
type cue struct {
	question *regexp.Regexp
	sentence *regexp.Regexp
}

const (
	months = `jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sep(t(ember)?)?|oct(ober)?|nov(ember)?|dec(ember)?`
	days   = `(mon|tues|wednes|thurs|fri|satur|sun)day`
)

var (
	summaryWords = regexp.MustCompile(`(?i)\b(summar\w*|sum up|tl;?dr|key (points|takeaways|facts)|main (points|ideas?)|gist|overview|in short|what (is|does) (this|it|the (text|article|document)) (about|say)|zusammenfass\w*|résum\w*|resum\w*)\b|总结|總結|概括|要約|まとめ`)
	manyWords    = regexp.MustCompile(`(?i)\b(list|all|every|each|which .*s\b|what (are|were)|who (are|were)|names?|steps|items|reasons|decisions|dates|deadlines|actions?|tasks|risks|numbers|figures)\b|哪些|列出|一覧`)

	numberCue   = cue{regexp.MustCompile(`(?i)\b(how (much|many|long|far|often|old)|cost|costs|price|budget|number|amount|percent|percentage|figures?|wie viel\w*|combien|cuánt\w*)\b|多少|いくら|几`), regexp.MustCompile(`\p{N}`)}
	dateCue     = cue{regexp.MustCompile(`(?i)\b(when|date|dates|deadline|deadlines|day|year|month|due|schedule|until|wann|quand|cuándo)\b|什么时候|何时|いつ|日期`), regexp.MustCompile(`(?i)\b(` + months + `|` + days + `|today|tomorrow|yesterday|tonight|noon|midnight|next (week|month|quarter|year)|q[1-4])\b|\b(1[0-9]|20)\d\d\b|\d+[:./-]\d+|\d年|月|日`)}
	decisionCue = cue{regexp.MustCompile(`(?i)\b(decision|decisions|decide|decided|agree|agreed|agreement|conclusion|outcome|resolved?)\b|决定|決定`), regexp.MustCompile(`(?i)\b(decid\w+|decisions?|agreed?|approv\w+|chose|chosen|choose|resolv\w+|conclu\w+|settled|adopt\w*|reject\w*|will not|won't|go(ing)? with)\b|决定|決定|同意|通过`)}
	actionCue   = cue{regexp.MustCompile(`(?i)\b(actions?|todos?|to-dos?|tasks?|next steps?|who (will|does|is going)|responsible|owner|owns|assigned)\b`), regexp.MustCompile(`(?i)\b(will|shall|must|needs? to|has to|have to|to do|by (` + days + `|next|the end|` + months + `)|owner|responsible|assigned)\b`)}
	reasonCue   = cue{regexp.MustCompile(`(?i)\b(why|reasons?|cause|causes|warum|pourquoi|por qué)\b|为什么|なぜ`), regexp.MustCompile(`(?i)\b(because|since|due to|caused?|therefore|so that|reason|as a result|owing to|thanks to|weil|parce que|porque)\b|因为|由于|ため|から`)}
	personCue   = cue{regexp.MustCompile(`(?i)\b(who|whom|whose|wer|qui|quién)\b|谁|誰`), regexp.MustCompile(`\p{Lu}\p{Ll}+`)}
	riskCue     = cue{regexp.MustCompile(`(?i)\b(risks?|problems?|issues?|concerns?|worr\w+|danger\w*)\b`), regexp.MustCompile(`(?i)\b(risk\w*|problem\w*|issues?|concern\w*|worr\w+|danger\w*|fail\w*|delay\w*|however|but|unfortunately)\b`)}
)

// condition is a "when" that asks for no date.
var condition = regexp.MustCompile(`(?i)\b(happens?|happened|even|only|except)\s+when\b`)

// names of days and months are capital and no persons.
var names = regexp.MustCompile(`(?i)\b(` + months + `|` + days + `)\b`)

// wishOf reads a question.
func wishOf(question string) wish {
	question = condition.ReplaceAllString(question, "$1")
	w := wish{
		summary: question == "" || summaryWords.MatchString(question),
		many:    manyWords.MatchString(question),
	}
	for _, c := range []cue{numberCue, dateCue, decisionCue, actionCue, reasonCue, personCue, riskCue} {
		if c.question.MatchString(question) {
			w.cues = append(w.cues, c)
		}
	}
	return w
}

// without takes the words that name the kind of answer out of a question.
func (w wish) without(question string) string {
	for _, c := range w.cues {
		question = c.question.ReplaceAllString(question, " ")
	}
	return question
}

// hits counts the cues that a sentence answers. A name at its start may only be
// the capital letter of a sentence and does not count.
func (w wish) hits(s sentence) (n int) {
	whole := s.text[:min(len(s.text), longestLine)] // patterns want letters, not whole characters, at the cut
	for _, c := range w.cues {
		text := whole
		if c == personCue {
			_, text, _ = strings.Cut(whole, " ")
			text = names.ReplaceAllString(text, "")
		}
		if c.sentence.MatchString(text) {
			n++
		}
	}
	return n
}

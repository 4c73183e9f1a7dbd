package demo

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/onereply/onereply/provider"
)

const introduction = "I am the **demo model** built into onereply. I do not think: I look through text you give me and quote the sentences that fit your question best. " +
	"That is enough to try sending, streaming, stopping and restarting, without an account.\n\n" +
	"**To try me**, paste some text, such as the notes of a meeting, with a question in front or behind:\n\n" +
	"> What are the key decisions, and who does what by when?\n>\n> *(your notes here)*\n\n" +
	"**For real answers**, start the server with a model that speaks chat completions, for example one run by Ollama:\n\n" +
	"```\nonereply serve --model compatible:llama3.2@http://127.0.0.1:11434/v1\n```"

const label = "*Extracts chosen by the demo model, which quotes and does not reason: %d of %s.*"

var greeting = regexp.MustCompile(`(?i)^\W*(hi|hello|hey|hiya|howdy|good (morning|afternoon|evening|day)|greetings|hallo|guten (tag|morgen|abend)|moin|servus|bonjour|salut|hola|buenos días|ciao|olá|你好|您好|こんにちは|안녕하세요|привет|thanks?( you)?|thank you|danke|merci|gracias|bye|test(ing)?|ping)( there| everyone| all| demo| world)?\W*$`)

// compose writes the answer to the last message.
func compose(messages []provider.Message) string {
	from := sourceOf(messages)
	if greeting.MatchString(from.question) && (from.text == "" || from.earlier) {
		return "Hello! " + introduction
	}
	if from.text == "" {
		return nothingToQuote(from.question)
	}
	sentences := split(from.text)
	if len(sentences) == 0 {
		return nothingToQuote(from.question)
	}
	r, w := rank(sentences), wishOf(from.question)
	where := "the text"
	if from.earlier {
		where = "the text you pasted earlier"
	}
	if !w.summary || len(w.cues) > 0 {
		if found, ok := r.answers(from.question, w); ok {
			return fmt.Sprintf("Closest to your question in %s:\n\n", where) + list(found, w.many) + closing(len(found), len(sentences))
		}
		if !w.summary {
			found := r.points(3)
			return fmt.Sprintf("No sentence in %s shares a word with your question. What it mainly says:\n\n", where) + list(found, true) + closing(len(found), len(sentences))
		}
	}
	found := r.points(max(1, min(5, (len(sentences)+2)/3)))
	if len(found) == 0 {
		found = sentences[:1]
	}
	return fmt.Sprintf("The main points of %s:\n\n", where) + list(found, true) + closing(len(found), len(sentences))
}

func nothingToQuote(question string) string {
	asked := quote(question)
	if asked == "" {
		return introduction
	}
	return "There is no text here for me to answer that from.\n\n" + introduction
}

// list sets the quotes below each other: as items where there are to be many,
// else as one quotation.
func list(found []sentence, items bool) string {
	var b strings.Builder
	for i, s := range found {
		switch {
		case items:
			b.WriteString("- ")
		case i > 0:
			b.WriteString(">\n> ")
		default:
			b.WriteString("> ")
		}
		b.WriteString(quote(s.text) + "\n")
	}
	return b.String()
}

func closing(quoted, all int) string {
	of := "1 sentence"
	if all != 1 {
		of = fmt.Sprintf("%d sentences", all)
	}
	return "\n" + fmt.Sprintf(label, quoted, of)
}

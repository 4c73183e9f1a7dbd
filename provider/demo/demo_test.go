package demo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
	"github.com/onereply/onereply/provider/demo"
	"github.com/onereply/onereply/provider/providertest"
)

const notes = `Meeting notes, 12 March. Present: Alice Moreno, Bob Tanaka, Dr. Singh.

We discussed the launch of the new billing system. Alice reported that the migration of invoices is 80% complete. The team agreed to postpone the public launch to 14 April, because the payment provider needs another security review. Bob asked whether we should keep the old system running. We decided to keep the legacy system in read-only mode until the end of June. Budget: the extra hosting costs about $4,200 per month.

Marketing will not announce anything before the review is passed. Dr. Singh will prepare the rollback plan by Friday. It was a long meeting, and the coffee was bad.`

const board = " The board decided to move the office in March. Anna pays the deposit by Friday. The café stays. The key decision was to hire two people."

const page = "# A page\n\n```\nx := lease() // is a lease\n```\n\nA lease is a time limit.\n\n| what a lease is | why |\n| --- | --- |\n| lease | never mind |\n\n" +
	"   lease --> renew --> lease\n ┌─────┐\n │lease│ renew\n └─────┘\n<!-- a lease\nis renew -->\n\nWhoever is late loses it.\n\n[a lease guide](guide.md) · [lease](lease.md)\n"

const report = `# Report
## Risks
- The vendor may be late with the parts we ordered.
- Two engineers leave in May.
## Timeline
- The alpha is planned for the 3rd of June.
- The beta follows on 1 August.`

// ask gives the answer to the last of the messages; the model's turns are made up.
func ask(t testing.TB, messages ...string) string {
	t.Helper()
	var r provider.Request
	for i, m := range messages {
		if i > 0 {
			r.Messages = append(r.Messages, provider.Message{Role: provider.Assistant, Text: "An answer about penguins in June."})
		}
		r.Messages = append(r.Messages, provider.Message{Role: provider.User, Text: m})
	}
	call := &providertest.Call{}
	var said strings.Builder
	answer, err := demo.New(0).Start(t.Context(), call, r, func(d string) error { said.WriteString(d); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if said.String() != answer.Text || answer.FinishReason != "stop" || answer.Truncated || answer.Model != demo.Name {
		t.Errorf("streamed %q, answered %+v", said.String(), answer)
	}
	if n, _ := call.Sends(); n != 1 {
		t.Errorf("took %d sends, want 1", n)
	}
	if !strings.Contains(answer.Text, "demo model") {
		t.Errorf("does not say what it is: %q", answer.Text)
	}
	return answer.Text
}

func TestAnswersQuoteTheText(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		messages []string
		with     []string
		without  []string
	}{
		{"the question comes first", []string{"What are the key decisions?\n\n" + notes}, []string{"- The team agreed to postpone", "- We decided to keep the legacy system"}, []string{"coffee", "penguins"}},
		{"the question comes last", []string{notes + "\n\nWhy was the launch postponed?"}, []string{"because the payment provider needs another security review."}, []string{"coffee", "hosting"}},
		{"the question is the last line", []string{notes + "\nHow much does hosting cost?"}, []string{"> Budget: the extra hosting costs about $4,200 per month."}, []string{"coffee", "rollback"}},
		{"the question is in the paragraph", []string{"The server was moved to Frankfurt in 2021 because of latency. Before that it was in Dublin, near the sea. In which year was the server moved?"}, []string{"Frankfurt in 2021"}, []string{"> In which"}},
		{"windows line ends", []string{strings.ReplaceAll(notes+"\n\nWho prepares the rollback plan?", "\n", "\r\n")}, []string{"> Dr. Singh will prepare the rollback plan by Friday."}, nil},
		{"who and when", []string{"Who does what by when?\n\n" + notes}, []string{"Dr. Singh will prepare the rollback plan by Friday."}, []string{"coffee"}},
		{"every decision, also one that is called so", []string{"What are the key decisions?" + board}, []string{"- The board decided to move", "- The key decision was to hire two people."}, []string{"café", "Anna"}},
		{"decisions, and who does what by when", []string{"What are the key decisions, and who does what by when?" + board}, []string{"- The board decided to move", "- Anna pays the deposit by Friday.", "- The key decision was"}, []string{"café"}},
		{"when, and nothing else", []string{"When?" + board}, []string{"> The board decided to move the office in March.", "> Anna pays the deposit by Friday."}, []string{"café", "hire"}},
		{"a day is no person", []string{"Who? On Monday it rained in the harbour. The keys went to Anna Berg."}, []string{"Anna Berg"}, []string{"Monday"}},
		{"a condition is no date", []string{"What happens when a worker stops? Its lease was invented in 1989. After the worker stops another takes over."}, []string{"another takes over"}, []string{"1989"}},
		{"a request before a colon", []string{"Summarize: The board met on Monday and chose Oslo. The rent is 900 euros. Everybody was happy."}, []string{"main points", "- The board met on Monday and chose Oslo.", "of 3 sentences"}, nil},
		{"a request before a colon, in two paragraphs", []string{"Summarize this: The board met on Monday and chose Oslo.\n\nThe rent is 900 euros."}, []string{"- The board met on Monday and chose Oslo.", "of 2 sentences"}, nil},
		{"a request before a colon and next to nothing", []string{"Summarize: A. B. C."}, []string{"- A. B. C."}, nil},
		{"a Chinese request before a colon", []string{"总结：董事会周一开会并选择了奥斯陆。租金为每月九百欧元。"}, []string{"main points", "of 2 sentences"}, nil},
		{"a colon inside a question", []string{"List these: costs, dates or people? The rent costs 900 euros a month. It was a long meeting."}, []string{"900 euros"}, []string{"long meeting"}},
		{"a page with code, a table and a drawing", []string{"What is a lease?\n\n" + page}, []string{"> A lease is a time limit."}, []string{"lease()", "renew", "never mind", "guide"}},
		{"a summary of such a page", []string{"Summarize this\n\n" + page}, []string{"A lease is a time limit.", "of 3 sentences"}, []string{"lease()", "renew", "never mind", "guide", "```"}},
		{"nothing but a table", []string{"What does a desk cost?\n\n| thing | cost |\n| --- | --- |\n| chair | 40 |\n| desk | 90 |"}, []string{"| desk | 90 |"}, nil},
		{"a list under a heading", []string{report + "\n\nList the risks"}, []string{"- The vendor may be late", "- Two engineers leave"}, []string{"beta"}},
		{"a summary", []string{"Summarize this:\n" + notes}, []string{"main points", "- "}, []string{"coffee"}},
		{"text without a question", []string{notes}, []string{"main points", "postpone the public launch"}, []string{"coffee"}},
		{"a later question about the earlier text", []string{"Summarize this:\n" + notes, "And when is the public launch?"}, []string{"pasted earlier", "14 April"}, []string{"penguins"}},
		{"a question the text has nothing on", []string{"What did Newton discover?\n\n" + notes}, []string{"No sentence"}, []string{"Newton"}},
		{"German, with an ordinal", []string{"Wann ist der Start?\n\nDer Start des neuen Systems wurde auf den 14. April verschoben. Das Team behält das alte System bis Ende Juni. Herr Dr. Weber schreibt den Plan."}, []string{"> Der Start des neuen Systems wurde auf den 14. April verschoben."}, []string{"Weber"}},
		{"Chinese", []string{"请问发布日期是什么时候？\n\n新的计费系统将于四月十四日发布。团队决定保留旧系统到六月底。预算为每月四千美元。王先生负责回滚计划。"}, []string{"> 新的计费系统将于四月十四日发布。"}, []string{"王先生"}},
		{"Japanese", []string{"会議で何が決定されましたか？\n\n新しい請求システムは四月に公開されます。古いシステムを六月まで残すことが決定されました。コーヒーはまずかった。"}, []string{"決定されました。"}, []string{"コーヒー"}},
		{"a greeting", []string{"Hello!"}, []string{"Hello!", "--model compatible:"}, []string{"There is no text"}},
		{"a greeting in another script", []string{"你好！"}, []string{"Hello!"}, nil},
		{"a question without a text", []string{"What is the capital of France?"}, []string{"no text here", "--model compatible:", "paste"}, []string{"Paris"}},
		{"white space", []string{" \n\t "}, []string{"paste"}, nil},
		{"rules and bullets alone", []string{"---\n***\n- \n# \n>"}, []string{"paste"}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := ask(t, test.messages...)
			for _, want := range test.with {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing in:\n%s", want, got)
				}
			}
			for _, not := range test.without {
				if strings.Contains(got, not) {
					t.Errorf("%q does not belong in:\n%s", not, got)
				}
			}
			if again := ask(t, test.messages...); again != got {
				t.Errorf("not the same twice:\n%s\n%s", got, again)
			}
		})
	}
}

func TestAConversationWithoutAQuestionIsMet(t *testing.T) {
	t.Parallel()
	answer, err := demo.New(0).Start(t.Context(), &providertest.Call{}, provider.Request{}, func(string) error { return nil })
	if err != nil || !strings.Contains(answer.Text, "demo model") {
		t.Errorf("got %q, %v", answer.Text, err)
	}
}

func TestALongTextIsReadWhole(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("Which city hosts the archive?\n\n")
	for i := range 2_000 {
		if i == 1_900 {
			text.WriteString("The archive of the society is hosted in the city of Ghent. ")
		}
		fmt.Fprintf(&text, "Line %d says nothing that matters here. ", i)
	}
	if got := ask(t, text.String()); !strings.Contains(got, "Ghent") {
		t.Errorf("the sentence near the end of %d KiB was not found:\n%s", text.Len()>>10, got)
	}
	// One line without an end, as of minified code.
	if got := ask(t, "Summarize this:\n"+strings.Repeat("x1y2,", 40_000)); len(got) > 4000 {
		t.Errorf("quotes %d bytes", len(got))
	}
}

// Whatever it is given, it answers with valid text of a bearable size, the same
// one every time, and quotes nothing that is not there.
func TestAnythingGetsAnAnswer(t *testing.T) {
	t.Parallel()
	piece := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"What are the decisions?", "\n\n", "\n", "We decided it. ", "e.g. ", "14. ", "。", "？", "- ", "# H", ":", "\x00", "\xff", "“Yes.” ", "...", "Dr. ", "a b c d e f g. ",
	}))
	rapid.Check(t, func(rt *rapid.T) {
		message := strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(rt, "pieces"), "")
		got := ask(t, message)
		if utf8.ValidString(message) && !utf8.ValidString(got) {
			rt.Fatalf("%q gave invalid text %q", message, got)
		}
		if len(got) > 16<<10 {
			rt.Fatalf("%q gave %d bytes", message, len(got))
		}
		if got != ask(t, message) {
			rt.Fatalf("%q gave two answers", message)
		}
		// The same words, whatever the white space between them.
		squeezed := strings.Join(strings.Fields(message), " ")
		for line := range strings.Lines(got) {
			quoted, ok := strings.CutPrefix(line, "> ")
			if !ok || strings.Contains(got, "*(your notes here)*") {
				continue
			}
			if quoted = strings.TrimSuffix(strings.TrimSpace(quoted), " …"); !strings.Contains(squeezed, quoted) {
				rt.Fatalf("%q is quoted and not in %q", quoted, squeezed)
			}
		}
	})
}

func TestItWaitsBetweenWords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var first time.Duration
		words := 0
		begun := time.Now()
		_, err := demo.New(20*time.Millisecond).Start(t.Context(), &providertest.Call{}, provider.Request{}, func(string) error {
			if words++; words == 1 {
				first = time.Since(begun)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); first != 0 || words < 20 || took != time.Duration(words-1)*20*time.Millisecond {
			t.Errorf("%d words in %s, the first after %s", words, took, first)
		}
	})
}

func TestAChineseAnswerStreamsInPieces(t *testing.T) {
	t.Parallel()
	pieces := 0
	_, err := demo.New(0).Start(t.Context(), &providertest.Call{}, provider.Request{Messages: []provider.Message{
		{Role: provider.User, Text: "发布日期？\n\n" + strings.Repeat("新的计费系统将于四月十四日发布", 8) + "。"},
	}}, func(d string) error {
		if pieces++; utf8.RuneCountInString(d) > 24 || !utf8.ValidString(d) {
			t.Errorf("a piece of %d bytes: %q", len(d), d)
		}
		return nil
	})
	if err != nil || pieces < 10 {
		t.Errorf("%d pieces, %v", pieces, err)
	}
}

func TestWhatEndsItEarly(t *testing.T) {
	t.Parallel()
	none := func(string) error { return nil }
	t.Run("the second send", func(t *testing.T) {
		t.Parallel()
		call := &providertest.Call{}
		if err := call.Send(); err != nil {
			t.Fatal(err)
		}
		answer, err := demo.New(0).Start(t.Context(), call, provider.Request{}, none)
		if !errors.Is(err, onereply.ErrUncounted) || answer != (provider.Answer{}) {
			t.Errorf("got %+v, %v", answer, err)
		}
	})
	t.Run("emit", func(t *testing.T) {
		t.Parallel()
		refused := errors.New("no more")
		answer, err := demo.New(0).Start(t.Context(), &providertest.Call{}, provider.Request{}, func(string) error { return refused })
		if !errors.Is(err, refused) || answer != (provider.Answer{}) {
			t.Errorf("got %+v, %v", answer, err)
		}
	})
	t.Run("a cancel while it waits", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		answer, err := demo.New(time.Hour).Start(ctx, &providertest.Call{}, provider.Request{}, func(string) error {
			cancel(onereply.ErrCancelled)
			return nil
		})
		if !errors.Is(err, onereply.ErrCancelled) || answer != (provider.Answer{}) {
			t.Errorf("got %+v, %v", answer, err)
		}
		if e := onereply.Classify(err, onereply.Observation{}, context.Cause(ctx), time.Now()); e.Class != onereply.ClassInterrupted {
			t.Errorf("class %s", e.Class)
		}
	})
}

func BenchmarkA64KBText(b *testing.B) {
	text := "What was decided?\n\n" + strings.Repeat(notes+"\n\n", 64<<10/len(notes))
	for b.Loop() {
		ask(b, text)
	}
}

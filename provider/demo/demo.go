// Package demo is a model without a model: it answers from the text it is given,
// by ranking its sentences against the question and quoting the best of them. It
// needs no account and no network, gives the same answer to the same request,
// and says in every answer what it is.
//
// Start reading at demo.go. compose.go decides what kind of answer is wanted,
// source.go tells the question from the text, prose.go leaves out what is no
// sentence, sentence.go cuts the text, rank.go and cues.go weigh the sentences, word.go has their words.
package demo

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
)

// Name is how the model is called where replies are labelled.
const Name = "demo"

// Model is the demo model. It is safe for concurrent use.
type Model struct{ delay time.Duration }

var _ provider.Model = (*Model)(nil)

// New returns the demo model, which waits for delay between two words; zero or
// less: not at all.
func New(delay time.Duration) *Model { return &Model{delay: delay} }

// Name returns "demo".
func (m *Model) Name() string { return Name }

// Start takes the call's send, although nothing leaves the process, so that the
// demo is counted like any model, and streams the answer word by word. Besides
// what Send and emit return, only the end of ctx ends it early.
func (m *Model) Start(ctx context.Context, call onereply.Call, r provider.Request, emit func(delta string) error) (provider.Answer, error) {
	if err := call.Send(); err != nil {
		return provider.Answer{}, fmt.Errorf("demo model: %w", err)
	}
	text := compose(r.Messages)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i, word := range pieces(text) {
		if i > 0 && m.delay > 0 {
			timer.Reset(m.delay)
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return provider.Answer{}, fmt.Errorf("demo model: %w", context.Cause(ctx))
		}
		if err := emit(word); err != nil {
			return provider.Answer{}, err
		}
	}
	return provider.Answer{Text: text, Model: Name, FinishReason: "stop"}, nil
}

// pieceRunes bounds a piece where a script has no spaces between words.
const pieceRunes = 12

// pieces cuts the answer after its spaces, and long runs without any.
func pieces(text string) []string {
	var out []string
	for _, word := range strings.SplitAfter(text, " ") {
		for utf8.RuneCountInString(word) > pieceRunes*2 {
			at := len(string([]rune(word)[:pieceRunes]))
			out, word = append(out, word[:at]), word[at:]
		}
		if word != "" {
			out = append(out, word)
		}
	}
	return out
}

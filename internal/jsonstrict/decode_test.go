package jsonstrict_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onereply/onereply/internal/jsonstrict"
)

type version struct {
	ID      string `json:"id"`
	Version int    `json:"version"`
}

type policy struct {
	OnUnknown string     `json:"on_unknown"`
	Deadline  *time.Time `json:"deadline"`
}

type paging struct {
	Limit uint8 `json:"limit"`
}

type body struct {
	Text      *string         `json:"text"`
	Documents []version       `json:"documents"`
	Policy    *policy         `json:"policy"`
	Labels    map[string]bool `json:"labels"`
	Ratio     float64         `json:"ratio"`
	Note      json.RawMessage `json:"note"`
	Hidden    string          `json:"-"`
	paging
}

func TestDecodeFillsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	var got body
	err := jsonstrict.Decode([]byte(` {"text":"h\u0069\n\ud83d\ude00","documents":[{"id":"d","version":2.0},{"id":"e","version":1e1}],
		"policy":{"on_unknown":"stop","deadline":"\u0032026-12-01T10:00:00Z"},"labels":{"a":true},"ratio":-0.5,"note":{"any":[1]},"limit":255} `), &got)
	if err != nil {
		t.Fatal(err)
	}
	text, deadline := "hi\n😀", time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	want := body{
		Text: &text, Documents: []version{{"d", 2}, {"e", 10}},
		Policy: &policy{"stop", &deadline}, Labels: map[string]bool{"a": true},
		Ratio: -0.5, Note: json.RawMessage(`{"any":[1]}`), paging: paging{255},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(body{}, paging{})); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeTellsAbsentFromZero(t *testing.T) {
	t.Parallel()
	var absent, empty body
	if err := errors.Join(jsonstrict.Decode([]byte(`{}`), &absent), jsonstrict.Decode([]byte(`{"text":"","policy":{},"documents":[]}`), &empty)); err != nil {
		t.Fatal(err)
	}
	if absent.Text != nil || absent.Policy != nil || absent.Documents != nil {
		t.Errorf("absent members filled %+v", absent)
	}
	if empty.Text == nil || empty.Policy == nil || empty.Documents == nil {
		t.Errorf("given members left %+v", empty)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	deep := func(n int) string {
		return `{"note":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	for _, c := range []struct {
		name, in, path, message string
		malformed               bool
	}{
		{"an empty body", ``, "", "empty", true},
		{"a body of white space", " \n", "", "empty", true},
		{"a body that is cut", `{"text":"a`, "/text", "no end", true},
		{"a body that ends after a member's name", `{"text"`, "/text", "a colon", true},
		{"a byte order mark", "\ufeff{}", "", "a value", true},
		{"a comma too many in an object", `{"text":"a",}`, "", "a member's name", true},
		{"a comma too many in an array", `{"documents":[{"id":"a"},]}`, "/documents/1", "a value", true},
		{"a missing comma", `{"text":"a" "ratio":1}`, "", "a comma", true},
		{"single quotes", `{'text':'a'}`, "", "a member's name", true},
		{"a comment", `{/**/}`, "", "a member's name", true},
		{"a second value", `{}{}`, "", "follows", true},
		{"trailing bytes", `{} x`, "", "follows", true},
		{"a trailing NUL", "{}\x00", "", "follows", true},
		{"invalid UTF-8 in a string", "{\"text\":\"\xff\"}", "", "UTF-8", true},
		{"a surrogate written as UTF-8", "{\"text\":\"\xed\xa0\x80\"}", "", "UTF-8", true},
		{"an overlong slash", "{\"text\":\"\xc0\xaf\"}", "", "UTF-8", true},
		{"a lone high surrogate", `{"text":"\ud800"}`, "/text", "surrogate", true},
		{"a lone low surrogate", `{"text":"\udc00"}`, "/text", "surrogate", true},
		{"two high surrogates", `{"text":"\ud800\ud800"}`, "/text", "surrogate", true},
		{"a lone surrogate in a name", `{"\ud800":1}`, "", "surrogate", true},
		{"a raw control character", "{\"text\":\"a\nb\"}", "/text", "control", true},
		{"an unknown escape", `{"text":"\x41"}`, "/text", "escape", true},
		{"a short unicode escape", `{"text":"\u12"}`, "/text", "hexadecimal", true},
		{"a signed unicode escape", `{"text":"\u+123"}`, "/text", "hexadecimal", true},
		{"a duplicate member", `{"text":"a","text":"a"}`, "/text", "twice", true},
		{"a duplicate spelled with an escape", `{"text":"a","\u0074ext":"b"}`, "/text", "twice", true},
		{"a duplicate deep inside", `{"documents":[{"id":"a","id":"b"}]}`, "/documents/0/id", "twice", true},
		{"a duplicate in a part that is not looked at", `{"note":{"a":{"b":1,"b":1}}}`, "/note/a/b", "twice", true},
		{"null for a member", `{"text":null}`, "/text", "null", true},
		{"null in an array", `{"documents":[null]}`, "/documents/0", "null", true},
		{"null as the body", `null`, "", "null", true},
		{"the first unsafe whole number", `{"ratio":9007199254740992}`, "/ratio", "out of range", true},
		{"its neighbour", `{"ratio":9007199254740993}`, "/ratio", "out of range", true},
		{"the first unsafe negative number", `{"ratio":-9007199254740992}`, "/ratio", "out of range", true},
		{"just above the largest", `{"ratio":9007199254740991.0001}`, "/ratio", "out of range", true},
		{"a number no float holds", `{"ratio":1e400}`, "/ratio", "out of range", true},
		{"a number that vanishes", `{"ratio":1e-400}`, "/ratio", "out of range", true},
		{"an exponent that overflows", `{"ratio":1e99999999999999999999}`, "/ratio", "out of range", true},
		{"a leading zero", `{"ratio":01}`, "/ratio", "well formed", true},
		{"a number without digits", `{"ratio":-}`, "/ratio", "well formed", true},
		{"a point without digits", `{"ratio":1.}`, "/ratio", "well formed", true},
		{"an exponent without digits", `{"ratio":1e+}`, "/ratio", "well formed", true},
		{"a plus sign", `{"ratio":+1}`, "/ratio", "a value", true},
		{"NaN", `{"ratio":NaN}`, "/ratio", "a value", true},
		{"a depth bomb", strings.Repeat("[", 1<<20), "/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0", "nested", true},
		{"one level too many", deep(jsonstrict.MaxDepth), "/note" + strings.Repeat("/0", jsonstrict.MaxDepth-1), "nested", true},

		{"an array as the body", `[]`, "", "expected an object, got an array", false},
		{"an unknown member", `{"model":"x"}`, "/model", "unknown member", false},
		{"an unknown member deep inside", `{"policy":{"retry":true}}`, "/policy/retry", "unknown member", false},
		{"a member in the wrong case", `{"Text":"a"}`, "/Text", `it is spelled "text"`, false},
		{"the name of a hidden field", `{"Hidden":"a"}`, "/Hidden", "unknown member", false},
		{"the name of an embedded struct", `{"paging":{}}`, "/paging", "unknown member", false},
		{"a name with separators", `{"a/b~c":1}`, "/a~1b~0c", "unknown member", false},
		{"a long unknown name", `{"` + strings.Repeat("é", 5000) + `":1}`, "/" + strings.Repeat("é", 40) + "…", "unknown member", false},
		{"a number for a string", `{"text":1}`, "/text", "expected a string, got a number", false},
		{"a string for a number", `{"ratio":"1"}`, "/ratio", "expected a number, got a string", false},
		{"a string for a boolean", `{"labels":{"a":"true"}}`, "/labels/a", "expected a boolean", false},
		{"an object for an array", `{"documents":{}}`, "/documents", "expected an array", false},
		{"an array for a map", `{"labels":[]}`, "/labels", "expected an object", false},
		{"a fraction for a whole number", `{"documents":[{"version":1.5}]}`, "/documents/0/version", "whole number", false},
		{"a whole number that does not fit", `{"limit":256}`, "/limit", "out of range", false},
		{"a negative number for an unsigned one", `{"limit":-1}`, "/limit", "out of range", false},
		{"a time that is none", `{"policy":{"deadline":"tomorrow"}}`, "/policy/deadline", "a time such as", false},
		{"a number for a time", `{"policy":{"deadline":5}}`, "/policy/deadline", "a time such as", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var into body
			err := jsonstrict.Decode([]byte(c.in), &into)
			var refused *jsonstrict.Error
			if !errors.As(err, &refused) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if refused.Path != c.path || !strings.Contains(refused.Message, c.message) || refused.Malformed != c.malformed {
				t.Errorf("got %q %q malformed %v, want %q … %q … malformed %v",
					refused.Path, refused.Message, refused.Malformed, c.path, c.message, c.malformed)
			}
			if len(refused.Message) > 120 {
				t.Errorf("message of %d bytes: %s", len(refused.Message), refused.Message)
			}
			if _, err := jsonstrict.Canonical([]byte(c.in)); (err != nil) != c.malformed {
				t.Errorf("Canonical: %v, want an error: %v", err, c.malformed)
			}
		})
	}
}

func TestDecodeAllowsTheDeepestAndTheLargest(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		`{"note":` + strings.Repeat("[", jsonstrict.MaxDepth-1) + strings.Repeat("]", jsonstrict.MaxDepth-1) + `}`,
		`{"ratio":9007199254740991}`, `{"ratio":-9007199254740991.0}`, `{"ratio":90071992547409910e-1}`, `{"ratio":0e999999999999999999999}`,
	} {
		var into body
		if err := jsonstrict.Decode([]byte(in), &into); err != nil {
			t.Errorf("%.40s: %v", in, err)
		}
	}
}

func TestDecodeIntoWhatCannotBeFilledIsTheProgramsMistake(t *testing.T) {
	t.Parallel()
	var (
		nothing *body
		channel struct {
			C chan int `json:"c"`
		}
		keyed struct {
			M map[int]int `json:"m"`
		}
		refused *jsonstrict.Error
	)
	for _, err := range []error{
		jsonstrict.Decode([]byte(`{}`), nothing), jsonstrict.Decode([]byte(`{}`), body{}),
		jsonstrict.Decode([]byte(`{"c":1}`), &channel), jsonstrict.Decode([]byte(`{"m":{}}`), &keyed),
	} {
		if err == nil || errors.As(err, &refused) {
			t.Errorf("got %v, want an error that blames the program", err)
		}
	}
}

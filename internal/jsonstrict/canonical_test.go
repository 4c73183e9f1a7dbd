package jsonstrict_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onereply/onereply/internal/jsonstrict"
)

func TestCanonicalForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"members are sorted and white space goes", "{ \"b\" : 1 ,\n\t\"a\" : [ 2 , 1 ] }", `{"a":[2,1],"b":1}`},
		{"nested members are sorted too", `[{"b":{"d":1,"c":2},"a":0}]`, `[{"a":0,"b":{"c":2,"d":1}}]`},
		{"members at zero stay", `{"s":"","n":0,"f":false,"a":[],"o":{}}`, `{"a":[],"f":false,"n":0,"o":{},"s":""}`},
		{"whole numbers have one spelling", `[1,1.0,1e0,10e-1,0.1E+1,100e-2]`, `[1,1,1,1,1,1]`},
		{"zeros are one zero", `[0,-0,0.0,0e9,-0.00]`, `[0,0,0,0,0]`},
		{"fractions have one spelling", `[0.50,5e-1,-1.2500,0.000001,0.0000001,1.5e-9]`, `[0.5,0.5,-1.25,0.000001,1e-7,15e-10]`},
		{"numbers are exact", `[9007199254740991,0.12345678901234567891,1e2]`, `[9007199254740991,0.12345678901234567891,100]`},
		{"needless escapes go", `"\u0041\/\u00e9\ud83d\ude00"`, `"A/é😀"`},
		{"needed escapes have one spelling", `"\u0022\u005c\u0008\u000c\u000a\u000d\u0009\u001f\u007f"`, `"\"\\\b\f\n\r\t\u001f` + "\x7f" + `"`},
		{"angle brackets and separators are kept", "\"<&>\u2028\"", "\"<&>\u2028\""},
		{"names are ordered as UTF-16 does", `{"\ufb33":1,"\ud83d\ude00":2,"\ud83d\ude01":3,"z":4,"":5}`, "{\"\":5,\"z\":4,\"😀\":2,\"😁\":3,\"\ufb33\":1}"},
		{"a prefix comes first", `{"ab":1,"a":2}`, `{"a":2,"ab":1}`},
		{"any value may stand alone", ` true `, `true`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := jsonstrict.Canonical([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestCanonicalKeepsDifferentInputsApart(t *testing.T) {
	t.Parallel()
	for name, pair := range map[string][2]string{
		"composed and decomposed letters":  {"\"\u00e9\"", "\"e\u0301\""},
		"array order":                      {`[1,2]`, `[2,1]`},
		"absent and zero":                  {`{}`, `{"text":""}`},
		"an empty object and an absent":    {`{"policy":{}}`, `{}`},
		"a number and its text":            {`1`, `"1"`},
		"numbers a float64 cannot tell":    {`0.1`, `0.10000000000000000001`},
		"signs":                            {`1`, `-1`},
		"a member and a member of a child": {`{"a":{"b":1}}`, `{"a":{},"b":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, errA := jsonstrict.Canonical([]byte(pair[0]))
			b, errB := jsonstrict.Canonical([]byte(pair[1]))
			if errA != nil || errB != nil {
				t.Fatal(errA, errB)
			}
			if bytes.Equal(a, b) {
				t.Errorf("%s and %s both became %s", pair[0], pair[1], a)
			}
		})
	}
}

// FuzzCanonical: nothing panics; what is accepted is JSON to the standard
// library too, means the same there, and its canonical form is a fixed point.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"text":"hi","documents":[{"id":"a","version":1.0}],"policy":{"deadline":"2026-12-01T10:00:00Z"}}`,
		`{"text":"\ud83d\ude00\u0000"}`, `[1e400,-0,0.1e-7,9007199254740991]`, `{"a":{"a":[[[]]]}}`, `{"text":"a","\u0074ext":1}`,
		`"\ud800"`, "\"\xff\"", `nul`, `[1,]`, `{"":""}`, `-`, `"\`, `"\u`, `{"ratio":1e-300}`, "\ufeff1", `[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var into body
		decodeErr := jsonstrict.Decode(in, &into)
		once, err := jsonstrict.Canonical(in)
		if err != nil {
			if decodeErr == nil {
				t.Fatalf("Decode accepts what Canonical refuses: %v", err)
			}
			return
		}
		twice, err := jsonstrict.Canonical(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("canonical of %s is %s, %v", once, twice, err)
		}
		var before, after any
		if err := json.Unmarshal(in, &before); err != nil {
			t.Fatalf("accepted what encoding/json refuses: %v", err)
		}
		if err := json.Unmarshal(once, &after); err != nil {
			t.Fatalf("canonical form %s: %v", once, err)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("the canonical form means something else:\n%s", diff)
		}
	})
}

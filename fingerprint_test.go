package onereply_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/onereply/onereply"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, raw, want string }{
		{"members are sorted", `{"b":1,"a":2}`, `{"a":2,"b":1}`},
		{"white space goes", " { \"a\" :\n[ 1 , 2 ] } ", `{"a":[1,2]}`},
		{"an empty string goes", `{"a":"","b":1}`, `{"b":1}`},
		{"null goes", `{"a":null,"b":1}`, `{"b":1}`},
		{"false goes", `{"a":false,"b":true}`, `{"b":true}`},
		{"zeros go in every spelling", `{"a":0,"b":0.0,"c":-0,"d":0e5,"e":1}`, `{"e":1}`},
		{"empty lists and objects go", `{"a":[],"b":{},"c":{"d":{"e":""}},"f":1}`, `{"f":1}`},
		{"zeros in lists stay", `{"a":[0,"",null,false,[],{}]}`, `{"a":[0,"",null,false,[],{}]}`},
		{"the order of a list stays", `[3,1,2]`, `[3,1,2]`},
		{"numbers keep their text", `{"a":1.10,"b":12345678901234567890,"c":1e2}`, `{"a":1.10,"b":12345678901234567890,"c":1e2}`},
		{"escapes and letters are one", `{"a":"\u00e9\/"}`, `{"a":"é/"}`},
		{"of a doubled member the last counts", `{"a":1,"a":2}`, `{"a":2}`},
		{"a number alone", `7`, `7`},
		{"null alone", `null`, `null`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := onereply.Canonical([]byte(test.raw))
			if err != nil || string(got) != test.want {
				t.Errorf("got %s, %v; want %s", got, err, test.want)
			}
		})
	}
}

func TestCanonicalRefusesWhatIsNotOneValue(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", " ", "{", `{"a":1}{}`, `1 2`, `{"a":1},`, "nul", `{"a":NaN}`} {
		if got, err := onereply.Canonical([]byte(raw)); err == nil {
			t.Errorf("%q became %s", raw, got)
		}
	}
}

// value draws JSON values of a few levels.
func value(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 6
		if depth == 0 {
			kinds = 4
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return rapid.SampledFrom([]string{"", "a", "é", "\x00"}).Draw(t, "string")
		case 1:
			return rapid.IntRange(-2, 2).Draw(t, "number")
		case 2:
			return rapid.Bool().Draw(t, "bool")
		case 3:
			return nil
		case 4:
			return rapid.SliceOfN(value(depth-1), 0, 3).Draw(t, "list")
		default:
			return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), value(depth-1), 0, 4).Draw(t, "object")
		}
	})
}

func TestCanonicalIsItsOwnCanonicalForm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := value(3).Draw(t, "value")
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		once, err := onereply.Canonical(raw)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := onereply.Canonical(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%s became %s, then %s, %v", raw, once, twice, err)
		}
		// A new member left at its zero changes nothing; any other does.
		object, ok := v.(map[string]any)
		if !ok || object == nil {
			return
		}
		for _, added := range []struct {
			value any
			same  bool
		}{{"", true}, {0, true}, {false, true}, {nil, true}, {[]int{}, true}, {map[string]any{}, true}, {"x", false}, {1, false}, {true, false}} {
			object["new"] = added.value
			raw, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			more, err := onereply.Canonical(raw)
			if err != nil || bytes.Equal(once, more) != added.same {
				t.Fatalf("with new=%v: %s and %s, %v", added.value, once, more, err)
			}
		}
	})
}

func TestFingerprintsOfDifferentInputsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, kind := range []string{"", "reply", "replyx", "index"} {
		for _, bound := range []string{"", "x", "xx", "reply", `{"a":1}`} {
			f := onereply.Fingerprint(kind, []byte(bound))
			if len(f) != 33 || f[0] != 1 {
				t.Fatalf("version and length: %x", f)
			}
			if other, taken := seen[string(f)]; taken {
				t.Errorf("%q %q has the fingerprint of %s", kind, bound, other)
			}
			seen[string(f)] = kind + " " + bound
			if !bytes.Equal(f, onereply.Fingerprint(kind, []byte(bound))) {
				t.Error("not the same twice")
			}
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":null}]}`, `1e999`, `"\ud800"`, `{"":0}`, "\xff", `[[[[]]]]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		once, err := onereply.Canonical(raw)
		if err != nil {
			return
		}
		if !json.Valid(once) {
			t.Fatalf("%q became %q", raw, once)
		}
		if twice, err := onereply.Canonical(once); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q became %q, then %q, %v", raw, once, twice, err)
		}
	})
}

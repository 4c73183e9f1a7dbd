package httpapi

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

func TestKeyHeader(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 255)
	for _, c := range []struct {
		name  string
		lines []string
		key   string
		code  string
	}{
		{"a bare key", []string{"8e03978e-40d5-43e8-bc93-6894a57f9324"}, "8e03978e-40d5-43e8-bc93-6894a57f9324", ""},
		{"a structured-field string is the same key", []string{`"8e03978e"`}, "8e03978e", ""},
		{"spaces around either form do not count", []string{"\t \"abc\" "}, "abc", ""},
		{"percent signs are ordinary characters", []string{"%zz%20"}, "%zz%20", ""},
		{"every allowed character", []string{"!#$%&'()*+-./:<=>?@[]^_`{|}~aZ09"}, "!#$%&'()*+-./:<=>?@[]^_`{|}~aZ09", ""},
		{"255 characters", []string{long}, long, ""},
		{"255 characters in quotes", []string{`"` + long + `"`}, long, ""},
		{"no header", nil, "", codeKeyMissing},
		{"256 characters", []string{long + "k"}, "", codeKeyInvalid},
		{"256 characters in quotes", []string{`"` + long + `k"`}, "", codeKeyInvalid},
		{"an empty value", []string{""}, "", codeKeyInvalid},
		{"an empty string", []string{`""`}, "", codeKeyInvalid},
		{"only spaces", []string{"  "}, "", codeKeyInvalid},
		{"two lines that are equal", []string{"k", "k"}, "", codeKeyInvalid},
		{"two lines that differ", []string{"k", "l"}, "", codeKeyInvalid},
		{"a parameter", []string{`"k";p=1`}, "", codeKeyInvalid},
		{"a parameter on a bare key", []string{"k;p=1"}, "", codeKeyInvalid},
		{"a list", []string{`"a", "b"`}, "", codeKeyInvalid},
		{"a bare list", []string{"a,b"}, "", codeKeyInvalid},
		{"an unterminated string", []string{`"k`}, "", codeKeyInvalid},
		{"one quote alone", []string{`"`}, "", codeKeyInvalid},
		{"a quote at the end only", []string{`k"`}, "", codeKeyInvalid},
		{"a quote inside", []string{`"a"b"`}, "", codeKeyInvalid},
		{"an escape", []string{`"a\"b"`}, "", codeKeyInvalid},
		{"a backslash", []string{`a\b`}, "", codeKeyInvalid},
		{"a space inside, as a folded line leaves it", []string{"a folded"}, "", codeKeyInvalid},
		{"a space inside quotes", []string{`" a"`}, "", codeKeyInvalid},
		{"a letter that is no ASCII", []string{"schlüssel"}, "", codeKeyInvalid},
		{"a control byte", []string{"a\x7fb"}, "", codeKeyInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{}
			if c.lines != nil {
				h[KeyHeader] = c.lines
			}
			key, err := requireKey(h)
			if key != c.key {
				t.Errorf("key %q, want %q", key, c.key)
			}
			if got := codeOf(err); got != c.code {
				t.Errorf("code %q (%v), want %q", got, err, c.code)
			}
			// Where a key is optional, only its absence is forgiven.
			if _, _, err := optionalKey(h); c.code == codeKeyMissing && err != nil || c.code == codeKeyInvalid && err == nil {
				t.Errorf("optional: %v", err)
			}
		})
	}
}

func codeOf(err error) string {
	var p *problem
	if errors.As(err, &p) {
		return p.code
	}
	return ""
}

func FuzzKeyHeader(f *testing.F) {
	for _, seed := range []string{"k", `"k"`, `""`, `"a\"b"`, "a,b", " k ", strings.Repeat("k", 256), "\xff", "a\nb"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		key, err := requireKey(http.Header{KeyHeader: {line}})
		if err != nil {
			if codeOf(err) != codeKeyInvalid {
				t.Fatalf("%q: %v", line, err)
			}
			return
		}
		if len(key) < 1 || len(key) > 255 || strings.ContainsAny(key, "\"\\,; \t\r\n") {
			t.Fatalf("%q was read as %q", line, key)
		}
		// Both spellings of a key are that key.
		for _, form := range []string{key, `"` + key + `"`} {
			if again, err := requireKey(http.Header{KeyHeader: {form}}); err != nil || again != key {
				t.Fatalf("%q of %q was read as %q, %v", form, line, again, err)
			}
		}
	})
}

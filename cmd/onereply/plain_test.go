package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestControlCharactersAreShownAndNotObeyed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"a colour", "\x1b[31mred\x1b[0m", "␛[31mred␛[0m"},
		{"a title that ends with a bell", "\x1b]0;x\a", "␛]0;x␇"},
		{"a carriage return goes", "safe\rover\r\n", "safeover\n"},
		{"backspaces and delete", "a\b\x7f", "a␈␡"},
		{"the eight-bit form of an escape", "\u009b31m", "\ufffd31m"},
		{"what text needs stays", "a\tb\nä 你好 🙂\u200d", "a\tb\nä 你好 🙂\u200d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if n, err := (plainWriter{&out}).Write([]byte(c.text)); n != len(c.text) || err != nil {
				t.Errorf("wrote %d bytes, %v", n, err)
			}
			if out.String() != c.want {
				t.Errorf("shows %q, want %q", out.String(), c.want)
			}
		})
	}
}

func TestJSONKeepsControlCharactersWithoutPrintingOne(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	text := "\x1b[31m\u009b\x7f\r\nä <b>"
	if err := printJSON(&out, text); err != nil {
		t.Fatal(err)
	}
	if plain(out.String()) != out.String() {
		t.Errorf("prints %q", out.String())
	}
	var back string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back != text {
		t.Errorf("%s is %q, %v", &out, back, err)
	}
}

func TestCommandsArePrintedAsTheProgramWasStarted(t *testing.T) {
	t.Parallel()
	for arg0, want := range map[string]string{
		"onereply":                               "onereply ask x",
		"./onereply":                             "./onereply ask x",
		"/opt/my bin/onereply":                   "'/opt/my bin/onereply' ask x",
		"/tmp/go-build3141592/b001/exe/onereply": "go run ./cmd/onereply ask x",
		`C:\\Temp\\go-build3141592\\b001\\exe\\onereply.exe`:                      "go run ./cmd/onereply ask x",
		"/home/me/.cache/go-build/ab/" + strings.Repeat("0f", 32) + "-d/onereply": "go run ./cmd/onereply ask x",
		"/elsewhere/ab/" + strings.Repeat("0f", 32) + "-d/onereply":               "go run ./cmd/onereply ask x",
	} {
		p := &process{called: calledAs(arg0)}
		if got := p.command("ask x"); got != want {
			t.Errorf("%s: %q, want %q", arg0, got, want)
		}
		var out bytes.Buffer
		p.stdout = &out
		p.print(askHelp)
		if start := strings.TrimSuffix(want, " ask x"); !strings.Contains(out.String(), "\n  "+start+" ask \"") || !strings.Contains(out.String(), "Usage: "+start+" ask") {
			t.Errorf("%s: help is %s", arg0, &out)
		}
	}
}

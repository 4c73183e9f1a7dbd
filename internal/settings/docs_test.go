package settings

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of docs/settings.md anew")

const (
	page  = "../../docs/settings.md"
	begin = "<!-- flags: go test ./internal/settings -update -->\n\n"
	end   = "\n<!-- end of flags -->\n"
)

func TestThePageOfSettingsIsTheTableOfFlags(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(raw), begin)
	old, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has lost the marks around its table", page)
	}
	var b bytes.Buffer
	Markdown(&b)
	if b.String() == old {
		return
	}
	if !*update {
		t.Fatalf("%s is out of date; run: go test ./internal/settings -update", page)
	}
	if err := os.WriteFile(page, []byte(before+begin+b.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

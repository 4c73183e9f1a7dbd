package main

import (
	"strings"
	"testing"
)

func TestSummarise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		in      string
		ok      bool
		want    []string
		without []string
	}{
		{
			"passing tests are listed by time and their output is dropped",
			`{"Action":"output","Package":"p","Test":"TestA","Output":"chatter\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":1.5}
{"Action":"pass","Package":"p","Test":"TestB","Elapsed":2.5}
{"Action":"output","Package":"p","Output":"ok  \tp\t4s\n"}
{"Action":"pass","Package":"p","Elapsed":4}
`, true, []string{"2.50s  p TestB\n     1.50s  p TestA", "ok  \tp", "1 packages, 2 tests, 0 failures"}, []string{"chatter"},
		},
		{
			"a failure is shown with its output",
			`{"Action":"output","Package":"p","Test":"TestA","Output":"why it failed\n"}
{"Action":"fail","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"fail","Package":"p","Elapsed":0}
`, false, []string{"why it failed"}, nil,
		},
		{
			"a build that failed is a failure",
			"# p\np.go:1: nonsense\n" + `{"ImportPath":"p","Action":"build-output","Output":"undefined: x\n"}
{"ImportPath":"p","Action":"build-fail"}
`, false, []string{"nonsense", "undefined: x"}, nil,
		},
		{
			"a skip is named",
			`{"Action":"output","Package":"p","Test":"TestA","Output":"no browser\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}
`, true, []string{"skipped: 1\n  p TestA", "no browser"}, nil,
		},
		{"nothing at all is a failure", "", false, []string{"0 packages"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			ok, err := summarise(strings.NewReader(c.in), &out, 5)
			if err != nil || ok != c.ok {
				t.Errorf("ok is %v, error %v, want ok %v", ok, err, c.ok)
			}
			for _, w := range c.want {
				if !strings.Contains(out.String(), w) {
					t.Errorf("output lacks %q:\n%s", w, &out)
				}
			}
			for _, w := range c.without {
				if strings.Contains(out.String(), w) {
					t.Errorf("output holds %q:\n%s", w, &out)
				}
			}
		})
	}
}

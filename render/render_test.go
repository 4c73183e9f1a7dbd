package render_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/onereply/onereply/render"
)

func TestHTML(t *testing.T) {
	t.Parallel()
	const safe = ` rel="nofollow noopener noreferrer" target="_blank">`
	for _, c := range []struct{ name, in, want string }{
		{"a paragraph", "Hello *there* **you** `x<y`", "<p>Hello <em>there</em> <strong>you</strong> <code>x&lt;y</code></p>\n"},
		{"a fenced block names its language", "```go\na := \"<b>\"\n```\n", "<pre><code class=\"language-go\">a := &#34;&lt;b&gt;&#34;\n</code></pre>\n"},
		{"a fenced block that is still open", "```c++\nint", "<pre><code class=\"language-c++\">int\n</code></pre>\n"},
		{"a fenced block with a strange language", "```a\"onclick=1\nx\n```", "<pre><code>x\n</code></pre>\n"},
		{"a table", "| a | b |\n|:-|-:|\n| 1 | ~~2~~ |", "<table>\n<thead>\n<tr>\n<th align=\"left\">a</th>\n<th align=\"right\">b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td align=\"left\">1</td>\n<td align=\"right\"><del>2</del></td>\n</tr>\n</tbody>\n</table>\n"},
		{"a list that starts later", "3. c\n4. d", "<ol start=\"3\">\n<li>c</li>\n<li>d</li>\n</ol>\n"},
		{"a task list", "- [ ] a\n- [x] b", "<ul>\n<li>☐ a</li>\n<li>☑ b</li>\n</ul>\n"},
		{"a link leads out of the page", "[x](https://e.org/?a=1&b=2 \"t\")", `<p><a href="https://e.org/?a=1&amp;b=2"` + safe + "x</a></p>\n"},
		{"bare addresses are links", "www.e.org and me@e.org", `<p><a href="http://www.e.org"` + safe + `www.e.org</a> and <a href="mailto:me@e.org"` + safe + "me@e.org</a></p>\n"},
		{"an image is a link", "![a *cat*](https://e.org/c.png)", `<p><a href="https://e.org/c.png"` + safe + "a <em>cat</em></a></p>\n"},
		{"an image without words shows its address", "![](https://e.org/c.png)", `<p><a href="https://e.org/c.png"` + safe + "https://e.org/c.png</a></p>\n"},
		{"an image in a link is its words", "[![cat](https://e.org/c.png)](https://e.org)", `<p><a href="https://e.org"` + safe + "cat</a></p>\n"},
		{"an address within the service is no link", "[x](/v1/tasks) [y](//e.org) [z](#a)", "<p>x y z</p>\n"},
		{"raw HTML in a line is text", "a <b>c</b> <br/>", "<p>a &lt;b&gt;c&lt;/b&gt; &lt;br/&gt;</p>\n"},
		{"a block of raw HTML is text", "<div>\n*x*\n</div>", "<p>&lt;div&gt;<br>\n*x*<br>\n&lt;/div&gt;</p>\n"},
		{"a comment is text", "<!-- a\n\nb -->", "<p>&lt;!-- a<br>\n<br>\nb --&gt;</p>\n"},
		{"right-to-left text is kept", "שלום **עולם**", "<p>שלום <strong>עולם</strong></p>\n"},
		{"nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := render.New().HTML(c.in); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

var attacks = []string{
	`<script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `<svg/onload=alert(1)>`, `<iframe src="javascript:alert(1)"></iframe>`,
	`<style>body{background:url(https://e.org)}</style>`, `<a href="javascript:alert(1)">x</a>`, `<math><mtext></mtext><script>alert(1)</script></math>`,
	"[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))", "[x](java\tscript:alert(1))", "[x](&#106;avascript:alert(1))", "[x](javascript&colon;alert(1))",
	"[x](data:text/html;base64,PHNjcmlwdD4=)", "[x](vbscript:x)", "[x](file:///etc/passwd)", "[x](//e.org)", "[x](\\javascript:alert(1))", "[x](\x01javascript:alert(1))",
	"<javascript:alert(1)>", "<data:text/html,x>", "![x](javascript:alert(1))", "![x](https://e.org/\"onerror=\"alert(1))", "![x](data:image/svg+xml,<svg/onload=alert(1)>)",
	"[x](https://e.org/\"onmouseover=alert(1) )", "[x](https://e.org 'a\" onclick=\"alert(1)')", "[a]: javascript:alert(1)\n\n[a]", "[x](https://user:pw@e.org)",
	"```\"><script>alert(1)</script>\nx\n```", "`<script>alert(1)</script>`", "    <script>alert(1)</script>", "| <script>alert(1)</script> |\n|-|\n| <img src=x onerror=alert(1)> |",
	"<div\n\n<script>alert(1)</script>", "<!--><script>alert(1)</script>-->", "<![CDATA[<script>alert(1)</script>]]>", "<?php echo 1 ?>", "<!DOCTYPE x>",
	"&lt;script&gt;alert(1)&lt;/script&gt;", "&#60;script&#62;", "</p><script>alert(1)</script>", "# <script>alert(1)</script>", "> <script>alert(1)</script>",
	"- <input autofocus onfocus=alert(1)>", "<form action=https://e.org><button>x</button></form>", "<base href=https://e.org>", "<link rel=stylesheet href=https://e.org>",
	"<meta http-equiv=refresh content=0>", "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">", "<details open ontoggle=alert(1)>", "a\x00<script>", "\u2028<script>alert(1)</script>",
	strings.Repeat("> ", 1000) + "<script>alert(1)</script>",
}

// TestNothingActiveComesThrough reads the rendering as a browser would, so that
// it does not depend on how a thing is spelled.
func TestNothingActiveComesThrough(t *testing.T) {
	t.Parallel()
	r := render.New()
	for _, attack := range attacks {
		for _, in := range []string{attack, "text " + attack + " text", "a\n\n" + attack + "\n\nb", "* " + attack, "**" + attack + "**", attack + attack} {
			if fault := active(r.HTML(in)); fault != "" {
				t.Errorf("%q: %s in %q", in, fault, r.HTML(in))
			}
		}
	}
}

// active says what in a page could act, load or lead into the service, or nothing.
func active(page string) string {
	allowed := map[string]string{
		"p": "", "br": "", "hr": "", "h1": "", "h2": "", "h3": "", "h4": "", "h5": "", "h6": "", "blockquote": "", "pre": "", "em": "", "strong": "", "del": "",
		"ul": "", "ol": "start", "li": "", "table": "", "thead": "", "tbody": "", "tr": "", "th": "align", "td": "align", "code": "class", "a": "href rel target",
	}
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return ""
		case html.CommentToken, html.DoctypeToken:
			return "a comment or doctype"
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			attributes, known := allowed[token.Data]
			if !known {
				return "element " + token.Data
			}
			for _, a := range token.Attr {
				if !strings.Contains(" "+attributes+" ", " "+a.Key+" ") {
					return fmt.Sprintf("attribute %s of %s", a.Key, token.Data)
				}
				if a.Key == "href" && !strings.HasPrefix(a.Val, "http://") && !strings.HasPrefix(a.Val, "https://") && !strings.HasPrefix(a.Val, "mailto:") {
					return "a link to " + a.Val
				}
			}
			if token.Data == "a" && !strings.Contains(token.String(), `rel="nofollow noopener noreferrer" target="_blank"`) {
				return "a link that keeps the page: " + token.String()
			}
		}
	}
}

func FuzzHTML(f *testing.F) {
	for _, attack := range attacks {
		f.Add(attack)
	}
	r := render.New()
	f.Fuzz(func(t *testing.T, in string) {
		if fault := active(r.HTML(in)); fault != "" {
			t.Errorf("%s in %q", fault, r.HTML(in))
		}
	})
}

// TestHostileTextsAreShownAsWritten: each of these takes goldmark from many
// seconds to minutes; the test ends because they are not given to it. An
// ordinary text of the same length is rendered.
func TestHostileTextsAreShownAsWritten(t *testing.T) {
	t.Parallel()
	const size = 200 << 10
	r := render.New()
	for name, unit := range map[string]string{
		"quotes in one line": "> ", "lists in one line": "1. ", "bullets in one line": "- ", "links that are not closed": "[a](", "links without words": "[](",
		"images that are not closed": "![a](http://x", "links with balanced parentheses": "[a](()", "links with titles that are not closed": "[a](b (c ",
		"code spans that do not close": "\\```\n", "tildes": "a~~~~~~~~", "emphasis": "_ **&*",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := strings.Repeat(unit, size/len(unit))
			if name == "tildes" {
				in = "a" + strings.Repeat("~", size)
			}
			if got := r.HTML(in); got != "<pre>"+html.EscapeString(in)+"</pre>\n" {
				t.Errorf("rendered as %.80q…", got)
			}
		})
	}
	t.Run("an ordinary text is rendered", func(t *testing.T) {
		t.Parallel()
		unit := "# Title\n\nSome *text* with `code`, **bold** and [a link](https://example.org \"t\").\n\n> quoted\n\n1. one\n   - two\n\n```go\nfunc f(a []int) { g[0](a) }\n```\n\n| a | b |\n|:-|-:|\n| 1 | 2 |\n\n"
		started := time.Now()
		got := r.HTML(strings.Repeat(unit, size/len(unit)))
		t.Logf("%d bytes rendered in %v", size, time.Since(started))
		if strings.HasPrefix(got, "<pre>") || strings.Count(got, "<table>") != size/len(unit) {
			t.Errorf("rendered as %.80q…", got)
		}
	})
}

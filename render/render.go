// Package render turns a model's Markdown into HTML that a page may show.
//
// It is done on the server, by goldmark and then bluemonday, so that a browser
// never makes HTML of a model's or a document's words by itself. Two layers keep
// it safe and neither relies on the other: [Renderer.HTML] writes raw HTML as
// the text it is, and what was written is passed through a list of allowed
// elements and attributes.
//
// The package holds the only use of both libraries. Start reading at HTML.
package render

import (
	"bytes"
	"html"
	"regexp"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// Renderer renders Markdown. It is safe for concurrent use and keeps nothing
// between calls.
type Renderer struct {
	markdown goldmark.Markdown
	policy   *bluemonday.Policy
}

// New returns a renderer of GitHub's Markdown: tables, strikethrough, task lists
// and bare links beside the usual.
func New() *Renderer {
	return &Renderer{
		markdown: goldmark.New(
			goldmark.WithExtensions(
				extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
				extension.Strikethrough, extension.TaskList,
				extension.NewLinkify(extension.WithLinkifyAllowedProtocols([]string{"http:", "https:", "mailto:"})),
			),
			goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(nodes{}, 1))),
		),
		policy: policy(),
	}
}

// HTML returns the rendering of a Markdown text: a fragment of block elements.
//
// Raw HTML appears as text. Links lead to http, https and mailto addresses
// only, open apart from the page and tell it no referrer; an image is a link to
// where it lies, because loading it would tell its host who reads. A fenced block
// names its language in a class language-*. Text that is beyond reason, by its
// length or by how it is nested, is returned as it was written, in a <pre>: what
// rendering costs stays in line with the text's length.
func (r *Renderer) HTML(markdown string) string {
	if tangled(markdown) {
		return plain(markdown)
	}
	var b bytes.Buffer
	if err := r.markdown.Convert([]byte(markdown), &b); err != nil {
		// Writing to memory does not fail; a rendering that does is shown unrendered.
		return plain(markdown)
	}
	return r.policy.SanitizeReader(&b).String()
}

func plain(text string) string { return "<pre>" + html.EscapeString(text) + "</pre>\n" }

// policy lists what a rendering may consist of. An element or attribute that is
// not here is not shown, whoever wrote it.
func policy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements(
		"p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "code",
		"em", "strong", "del", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td",
	)
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^language-[A-Za-z0-9_+#.-]{1,40}$`)).OnElements("code")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|center|right)$`)).OnElements("th", "td")
	p.AllowAttrs("href").OnElements("a")
	p.AllowAttrs("rel").Matching(regexp.MustCompile(`^nofollow noopener noreferrer$`)).OnElements("a")
	p.AllowAttrs("target").Matching(regexp.MustCompile(`^_blank$`)).OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(false)
	return p
}

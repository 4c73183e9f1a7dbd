package render

import (
	"bytes"
	"net/url"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// nodes writes what goldmark would write in another way: raw HTML as text, links
// with the attributes that keep the page to itself, images as links.
type nodes struct{}

// RegisterFuncs tells goldmark which nodes these are.
func (nodes) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindHTMLBlock, htmlBlock)
	reg.Register(ast.KindRawHTML, rawHTML)
	reg.Register(ast.KindLink, link)
	reg.Register(ast.KindAutoLink, autoLink)
	reg.Register(ast.KindImage, image)
	reg.Register(extast.KindTaskCheckBox, checkBox)
}

func htmlBlock(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*ast.HTMLBlock)
	if !entering {
		return ast.WalkContinue, nil
	}
	var text bytes.Buffer
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		text.Write(line.Value(source))
	}
	if n.HasClosure() {
		closure := n.ClosureLine
		text.Write(closure.Value(source))
	}
	lines := util.EscapeHTML(bytes.TrimRight(text.Bytes(), "\r\n"))
	_, err := w.WriteString("<p>" + strings.ReplaceAll(string(lines), "\n", "<br>\n") + "</p>\n")
	return ast.WalkContinue, err
}

func rawHTML(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkSkipChildren, nil
	}
	segments := node.(*ast.RawHTML).Segments
	for i := range segments.Len() {
		segment := segments.At(i)
		if _, err := w.Write(util.EscapeHTML(segment.Value(source))); err != nil {
			return ast.WalkStop, err
		}
	}
	return ast.WalkSkipChildren, nil
}

func link(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	return anchor(w, node.(*ast.Link).Destination, entering)
}

// image is a link with the image's description; inside a link, where another
// cannot be, the description alone.
func image(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	for p := node.Parent(); p != nil; p = p.Parent() {
		if p.Kind() == ast.KindLink {
			return ast.WalkContinue, nil
		}
	}
	n := node.(*ast.Image)
	if !entering && !n.HasChildren() {
		if _, err := w.Write(util.EscapeHTML(n.Destination)); err != nil {
			return ast.WalkStop, err
		}
	}
	return anchor(w, n.Destination, entering)
}

func autoLink(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*ast.AutoLink)
	if !entering {
		return ast.WalkContinue, nil
	}
	to := n.URL(source)
	if n.AutoLinkType == ast.AutoLinkEmail && !bytes.HasPrefix(bytes.ToLower(to), []byte("mailto:")) {
		to = append([]byte("mailto:"), to...)
	}
	if _, err := anchor(w, to, true); err != nil {
		return ast.WalkStop, err
	}
	if _, err := w.Write(util.EscapeHTML(n.Label(source))); err != nil {
		return ast.WalkStop, err
	}
	return anchor(w, to, false)
}

// anchor opens or closes a link, where the address is one that may be followed.
func anchor(w util.BufWriter, destination []byte, entering bool) (ast.WalkStatus, error) {
	var err error
	switch {
	case !followable(destination):
	case entering:
		_, err = w.WriteString(`<a href="` + string(util.EscapeHTML(util.URLEscape(destination, true))) + `" rel="nofollow noopener noreferrer" target="_blank">`)
	default:
		_, err = w.WriteString("</a>")
	}
	return ast.WalkContinue, err
}

// followable reports whether an address leads out to the web or a mailbox. One
// without a scheme would lead into the page's own service.
func followable(destination []byte) bool {
	u, err := url.Parse(strings.TrimSpace(string(destination)))
	if err != nil {
		return false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		return u.Host != ""
	case "mailto":
		return u.Opaque != ""
	}
	return false
}

// checkBox draws the box of a task list with a character: a form's control in an
// answer would be one that does nothing.
func checkBox(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	box := "☐ "
	if node.(*extast.TaskCheckBox).IsChecked {
		box = "☑ "
	}
	_, err := w.WriteString(box)
	return ast.WalkContinue, err
}

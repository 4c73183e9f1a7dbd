package render

import "strings"

// Bounds beyond which a text is shown as it was written. They are far from what
// anybody writes and keep a rendering's cost in line with the text's length:
// goldmark's grows with its square where quotes or lists are nested without end,
// where links or code spans are opened and never closed, and in the number of a
// paragraph's marks of emphasis.
const (
	maxBytes = 2 << 20
	maxDepth = 48      // quotes and lists opened by one line
	maxScan  = 4 << 20 // bytes looked at for the ends of links, and for those of code spans
	maxMarks = 8 << 10 // marks of emphasis in one paragraph
	maxRun   = 512     // tildes in a row
)

// tangled reports whether a text is beyond those bounds. It costs no more than
// they allow.
func tangled(markdown string) bool {
	if len(markdown) > maxBytes {
		return true
	}
	for line := range strings.Lines(markdown) {
		if depth(line) > maxDepth {
			return true
		}
	}
	for paragraph := range strings.SplitSeq(markdown, "\n\n") {
		if strings.Count(paragraph, "*")+strings.Count(paragraph, "_") > maxMarks {
			return true
		}
	}
	return linkScan(markdown) >= maxScan || codeScan(markdown) >= maxScan || strings.Contains(markdown, strings.Repeat("~", maxRun+1))
}

// linkScan adds up how far each link must be read to find its end.
func linkScan(text string) (scanned int) {
	for scanned < maxScan {
		_, after, found := strings.Cut(text, "](")
		if !found {
			break
		}
		scanned += linkEnd(after, maxScan-scanned)
		text = after
	}
	return scanned
}

// codeScan adds up how far it is from each run of backticks to the next one of
// the same length in its paragraph, which is where a code span ends, or to the
// paragraph's end where there is none.
func codeScan(text string) (scanned int) {
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		next := map[int]int{} // length of a run → where the next one begins
		for end := strings.LastIndexByte(paragraph, '`') + 1; end > 0; {
			start := len(strings.TrimRight(paragraph[:end], "`"))
			opens := end - start
			if start > 0 && paragraph[start-1] == '\\' {
				opens-- // the first is escaped; inside a code span it would not be
			}
			closes, found := next[opens]
			if !found {
				closes = len(paragraph)
			}
			scanned += closes - start
			next[end-start] = start
			end = strings.LastIndexByte(paragraph[:start], '`') + 1
		}
	}
	return scanned
}

// depth counts the quotes and lists that a line opens, up to one past the bound.
func depth(line string) (n int) {
	for n <= maxDepth {
		line = strings.TrimLeft(line, " \t")
		rest := strings.TrimLeft(line, "0123456789")
		numbered := len(rest) < len(line)
		switch {
		case !numbered && strings.HasPrefix(rest, ">"):
			line = rest[1:]
		case numbered && startsItem(rest, ".)"), !numbered && startsItem(rest, "-+*"):
			line = rest[1:]
		default:
			return n
		}
		n++
	}
	return n
}

func startsItem(s, markers string) bool {
	return len(s) > 1 && strings.IndexByte(markers, s[0]) >= 0 && strings.IndexByte(" \t\r\n", s[1]) >= 0
}

// linkEnd walks the way goldmark does from the opening parenthesis of a link,
// over its address and then its title, and returns how far it came: at most limit.
func linkEnd(s string, limit int) int {
	s = s[:min(len(s), limit)]
	if blank := strings.Index(s, "\n\n"); blank >= 0 {
		s = s[:blank]
	}
	i, open := 0, 0
	for ; i < len(s); i++ {
		switch s[i] {
		case ' ', '\t', '\n', '\r':
			return i + title(s[i:])
		case '\\':
			i++
		case '(':
			open++
		case ')':
			if open--; open < 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

func title(s string) int {
	rest := strings.TrimLeft(s, " \t\r\n")
	if rest == "" {
		return len(s)
	}
	closing := map[byte]string{'"': `"`, '\'': `'`, '(': `)`, '<': `>`}[rest[0]]
	if closing == "" {
		return len(s) - len(rest) + 1
	}
	if end := strings.Index(rest[1:], closing); end >= 0 {
		return len(s) - len(rest) + end + 2
	}
	return len(s)
}

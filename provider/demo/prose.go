package demo

import (
	"regexp"
	"strings"
	"unicode"
)

// proseOf blanks the lines of a text that are no sentences: code between fences,
// rows of tables, diagrams drawn with characters, comments, and lines of nothing
// but links. A text that has nothing else is kept whole: it is all there is.
func proseOf(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	kept := make([]string, len(lines))
	some := false
	for i, end := 0, -1; i < len(lines); i++ {
		if i > end {
			end = fenced(lines, i)
		}
		if i <= end || isTableRow(lines[i]) || isDrawing(lines[i]) || isLinks(lines[i]) {
			continue
		}
		kept[i] = lines[i]
		some = some || bullet(lines[i]) != ""
	}
	if !some {
		return text
	}
	return strings.Join(kept, "\n")
}

// fenced gives the line that closes the block which line i opens, or i-1 when it
// opens none. A fence that nothing closes is a line like any other.
func fenced(lines []string, i int) int {
	mark := ""
	for _, fence := range []string{"```", "~~~", "<!--"} {
		if strings.HasPrefix(strings.TrimSpace(lines[i]), fence) {
			mark = fence
		}
	}
	if mark == "<!--" {
		for n := i; n < len(lines); n++ {
			if strings.Contains(lines[n], "-->") {
				return n
			}
		}
	} else if mark != "" {
		for n := i + 1; n < len(lines); n++ {
			if strings.HasPrefix(strings.TrimSpace(lines[n]), mark) {
				return n
			}
		}
	}
	return i - 1
}

// isTableRow reports whether a line is a row in Markdown's form.
func isTableRow(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "|") && strings.Count(line, "|") >= 2
}

var arrows = regexp.MustCompile(`--+>|==+>|<--+|<==+|\+--+|--+\+`)

// isDrawing reports whether a line is part of a picture: lines and arrows, with
// or without words between them.
func isDrawing(line string) bool {
	words, marks := 0, 0
	for _, r := range line {
		switch {
		case r >= 0x2500 && r <= 0x25ff: // boxes, blocks and geometric shapes
			if !strings.HasPrefix(strings.TrimSpace(line), string(r)) || strings.Count(line, string(r)) > 1 {
				return true // one at the start is a list's mark
			}
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
			words++
		case !unicode.IsSpace(r):
			marks++
		}
	}
	return arrows.MatchString(line) || marks > 3 && marks > words
}

var aLink = regexp.MustCompile(`!?\[[^\]]*\]\([^)]*\)|https?://\S+`)

// isLinks reports whether a line has links and no word beside them.
func isLinks(line string) bool {
	rest := aLink.ReplaceAllString(line, "")
	return rest != line && !strings.ContainsFunc(rest, unicode.IsLetter)
}

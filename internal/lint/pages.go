package lint

import (
	"fmt"
	"regexp"
	"strings"
)

// Limits of a page of docs/. Pages of docs/lab/, which describe experiments, may be longer.
const (
	maxPage      = 250 // lines
	maxLine      = 160 // characters of a line outside tables and comments
	maxParagraph = 8   // lines of plain text in a row
)

var (
	// item starts a part that is no plain text: a table's row, a heading, code, a quotation, a list
	// item or its continuation.
	item   = regexp.MustCompile("^(\\||#|>|```|\\s|[-*] |\\d+\\. )")
	fenced = regexp.MustCompile("(?ms)^```.*?^```")
	spaces = strings.NewReplacer(" ", "-")
	noSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	heads  = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// checkPage finds what makes a page hard to read.
func checkPage(text string) []string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var bad []string
	if len(lines) > maxPage {
		bad = append(bad, fmt.Sprintf("%d lines; split it (at most %d)", len(lines), maxPage))
	}
	run, code := 0, false
	for i, l := range lines {
		if n := len([]rune(l)); n > maxLine && !strings.HasPrefix(l, "|") && !strings.HasPrefix(l, "<!-- ") {
			bad = append(bad, fmt.Sprintf("line %d: %d characters (at most %d)", i+1, n, maxLine))
		}
		if strings.HasPrefix(l, "```") {
			code = !code
		}
		if code || l == "" || item.MatchString(l) {
			run = 0
			continue
		}
		if run++; run == maxParagraph+1 {
			bad = append(bad, fmt.Sprintf("line %d: a paragraph of more than %d lines", i+1, maxParagraph))
		}
	}
	return bad
}

// anchors are the link names of a page's headings.
func anchors(text string) map[string]bool {
	names := map[string]bool{}
	for _, m := range heads.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		names[spaces.Replace(noSlug.ReplaceAllString(strings.ToLower(m[1]), ""))] = true
	}
	return names
}

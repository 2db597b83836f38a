package main

import (
	"fmt"
	"io"
	"strings"
)

// writeMarkdown writes the table for documents.
func writeMarkdown(w io.Writer, r *Report) error {
	l := layoutOf(r)
	var heads, rules []string
	for _, c := range l.columns {
		heads, rules = append(heads, c.head), append(rules, "---")
	}
	lines := []string{fmt.Sprintf("%s (%s)", l.title, r.Machine), "", markdownRow(heads), markdownRow(rules)}
	for _, cells := range l.cells(r) {
		lines = append(lines, markdownRow(cells))
	}
	lines = append(lines, "")
	for _, n := range notes(r, l) {
		lines = append(lines, "- "+markdownText(n))
	}
	for _, s := range sentences(r) {
		lines = append(lines, "- "+markdownText(s))
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

func markdownRow(cells []string) string {
	for i := range cells {
		cells[i] = markdownText(cells[i])
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// markdownText escapes characters that Markdown would take as markup.
var markdownText = strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "\n", " ").Replace

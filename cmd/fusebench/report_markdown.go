package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// writeMarkdown writes the table for documents.
func writeMarkdown(w io.Writer, r *Report) error {
	l := layoutOf(r)
	lines := []string{fmt.Sprintf("%s (%s)", l.title, r.Machine), ""}
	lines = append(append(lines, markdownTable(l.heads(), l.cells(r))...), "")
	for _, n := range notes(r, l) {
		lines = append(lines, "- "+markdownText(n))
	}
	for _, s := range sentences(r) {
		lines = append(lines, "- "+markdownText(s))
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// markdownTable returns the lines of a table.
func markdownTable(heads []string, table [][]string) []string {
	lines := []string{markdownRow(heads), markdownRow(slices.Repeat([]string{"---"}, len(heads)))}
	for _, cells := range table {
		lines = append(lines, markdownRow(cells))
	}
	return lines
}

func markdownRow(cells []string) string {
	for i := range cells {
		cells[i] = markdownText(cells[i])
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// markdownText escapes characters that Markdown would take as markup.
var markdownText = strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "\n", " ").Replace

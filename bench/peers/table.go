package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace/internal/paired"
)

// columns is how many workloads one table has.
const columns = 5

const legend = "A cell is the median time in ms and, in brackets, how many times ours (the first row that ran) with its 95 % interval; " +
	"**bold** where a rival is ahead by more than that interval. A dash: the library has no such operations; ✗: it failed or disagreed, see below."

// markdown is the report for a document: tables with a row for each contestant,
// where rivals are ahead, and who is missing or was left out.
func (r *Report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s. %d threads each, float32, medians of %d rounds after %d to warm up.\n", r.Machine, r.Threads, r.Rounds, r.WarmUps)
	r.versions(&b)
	b.WriteString("\n" + legend + "\n")
	for ws := range slices.Chunk(r.Workloads, columns) {
		r.table(&b, ws)
	}
	r.ahead(&b)
	r.absent(&b)
	b.WriteString("\nThe rows, and where the time of a good program goes:\n\n")
	for _, w := range r.Workloads {
		fmt.Fprintf(&b, "- %s: %s; %s. Agreed within %.2g.\n", w.Name, w.About, w.Bound, w.Tolerance)
	}
	return folded(b.String())
}

// width is that of text in a document.
const width = 140

// folded breaks lines that are too long and no rows of a table.
func folded(text string) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "|") {
			out = append(out, line)
			continue
		}
		indent := ""
		for n := 0; len([]rune(line)) > width; n++ {
			if n == 0 && strings.HasPrefix(line, "- ") {
				indent = "  "
			}
			at := strings.LastIndex(string([]rune(line)[:width]), " ")
			if at <= len(indent) {
				break
			}
			out = append(out, line[:at])
			line = indent + line[at+1:]
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func (r *Report) versions(b *strings.Builder) {
	all := map[string]string{}
	for _, c := range r.Contestants {
		maps.Copy(all, c.Versions)
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] != "" {
			list = append(list, name+" "+all[name])
		}
	}
	if len(list) > 0 {
		fmt.Fprintf(b, "Versions: %s.\n", strings.Join(list, ", "))
	}
}

func (r *Report) table(b *strings.Builder, ws []*Result) {
	b.WriteString("\n| |")
	for _, w := range ws {
		fmt.Fprintf(b, " %s |", w.Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(ws)) + "\n")
	for _, c := range r.Contestants {
		if c.Missing != "" {
			continue
		}
		fmt.Fprintf(b, "| %s |", c.Name)
		for _, w := range ws {
			fmt.Fprintf(b, " %s |", r.cell(w, c))
		}
		b.WriteString("\n")
	}
}

func (r *Report) cell(w *Result, c *Presence) string {
	e, base := w.entry(c.Name), r.base(w)
	switch {
	case e == nil || e.Status == unsupported:
		return "–"
	case e.bad():
		return "✗"
	}
	ms := digits(paired.Median(e.Seconds) * 1e3)
	if base == nil || e == base {
		return ms
	}
	est, ahead := ratio(e, base)
	text := fmt.Sprintf("%s (%s, %s to %s)", ms, digits(est.Mid), digits(est.Lo), digits(est.Hi))
	if ahead && !c.Ours {
		text = "**" + text + "**"
	}
	return text
}

// ahead lists where rivals are, whatever they keep: surely, and by their median.
func (r *Report) ahead(b *strings.Builder) {
	surely := r.rivals(func(_ float64, ahead bool) bool { return ahead })
	perhaps := r.rivals(func(mid float64, ahead bool) bool { return !ahead && mid < 1 })
	fmt.Fprintf(b, "\nRivals that are ahead, by more than the interval:\n\n%s", surely)
	fmt.Fprintf(b, "\nRivals that are ahead by the median, in an interval that has 1 in it:\n\n%s", perhaps)
}

// rivals are the ratios that are wanted, by workload.
func (r *Report) rivals(wanted func(mid float64, ahead bool) bool) string {
	var lines strings.Builder
	for _, w := range r.Workloads {
		var list []string
		for _, c := range r.Contestants {
			e, base := w.entry(c.Name), r.base(w)
			if e == nil || base == nil || c.Ours || e.Status != ok {
				continue
			}
			if est, ahead := ratio(e, base); wanted(est.Mid, ahead) {
				list = append(list, fmt.Sprintf("%s %s", c.Name, digits(est.Mid)))
			}
		}
		if len(list) > 0 {
			fmt.Fprintf(&lines, "- %s: %s.\n", w.Name, strings.Join(list, "; "))
		}
	}
	if lines.Len() == 0 {
		return "- none.\n"
	}
	return lines.String()
}

// absent lists contestants that are not installed, and entries that are out.
func (r *Report) absent(b *strings.Builder) {
	var list []string
	for _, c := range r.Contestants {
		if c.Missing != "" {
			list = append(list, fmt.Sprintf("- %s: not installed (%s).\n", c.Name, plain(c.Missing)))
		}
	}
	for _, w := range r.Workloads {
		for _, e := range w.Entries {
			if e.bad() {
				list = append(list, fmt.Sprintf("- %s, %s: %s, %s.\n", w.Name, e.Contestant, e.Status, plain(e.Why)))
			}
		}
	}
	if len(list) > 0 {
		b.WriteString("\nMissing, or left out:\n\n" + strings.Join(list, ""))
	}
}

// plain is a text in one short line, without markup.
func plain(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 100 {
		s = string(r[:100]) + "…"
	}
	return strings.NewReplacer("|", "/", "*", "", "`", "'", "<", "&lt;", "_", `\_`).Replace(s)
}

// digits are three that count.
func digits(f float64) string {
	if f >= 1000 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	s := strconv.FormatFloat(f, 'g', 3, 64)
	if strings.Contains(s, "e") {
		s = strconv.FormatFloat(f, 'f', 6, 64)
	}
	return s
}

const (
	begin = "<!-- written by go run ./bench/peers -->"
	end   = "<!-- end of what it wrote -->"
)

// placed is a page with the text between its marks, which are all of it where there
// is no page yet.
func placed(page, text string) (string, error) {
	if page == "" {
		page = begin + end + "\n"
	}
	before, rest, found := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", fmt.Errorf("the page has no lines %s and %s", begin, end)
	}
	return before + begin + "\n\n" + text + "\n" + end + after, nil
}

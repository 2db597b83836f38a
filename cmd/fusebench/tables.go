package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/millrace-go/millrace"
)

// Documents have figures in blocks between two comments. The first comment says which figures of
// which reports in JSON the block shows, and fusebench tables writes the block:
//
//	<!-- table: data/gelu-cpu.json data/gelu-gpu.json; modes: fused; columns: device, variant, median ms -->
//	<!-- medians: data/*-cpu.json data/*-nocgo.json; variants: custom -->
//	<!-- picture: gelu.svg; of: data/gelu-cpu.json -->
//	<!-- end -->
//
// Files are named relative to the page's folder. A table has a row for each row of the reports
// that modes and variants select, and the columns that are named, or all. Medians, in ms, have a
// row for each variant and a column for each device and build. A picture is written beside the
// page.
const (
	blockBegins = "<!-- "
	blockEnds   = "<!-- end -->"
)

// setupTables sets up fusebench tables.
func setupTables() ([]cli.Flag, action) {
	var check bool
	flags := []cli.Flag{&cli.BoolFlag{Name: "check", Destination: &check, Usage: "change nothing, and fail if a document would change"}}
	return flags, func(io streams, args []string) error {
		if len(args) == 0 {
			return usageError("want pages, such as docs/benchmarks.md")
		}
		var stale []string
		for _, page := range args {
			files, err := fillPage(page)
			if err != nil {
				return fmt.Errorf("%s: %w", page, err)
			}
			for _, f := range files {
				old, err := os.ReadFile(f.path)
				if err == nil && bytes.Equal(old, f.data) {
					continue
				}
				stale = append(stale, f.path)
				if check {
					continue
				}
				if err := os.WriteFile(f.path, f.data, 0o666); err != nil {
					return err
				}
				fmt.Fprintln(io.out, f.path)
			}
		}
		if check && len(stale) > 0 {
			return fmt.Errorf("differs from its data: %s; run fusebench tables", strings.Join(stale, ", "))
		}
		return nil
	}
}

// A filled is a file as the data says it should be.
type filled struct {
	path string
	data []byte
}

// fillPage returns the page with its blocks filled, and its pictures.
func fillPage(page string) ([]filled, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	var out []string
	var pictures []filled
	lines := strings.Split(string(text), "\n")
	for i := 0; i < len(lines); i++ {
		b, err := parseFigures(lines[i])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		out = append(out, lines[i])
		if b == nil {
			continue
		}
		n := slices.Index(lines[i+1:], blockEnds)
		if n < 0 {
			return nil, fmt.Errorf("line %d: no line %q ends this block", i+1, blockEnds)
		}
		inner, pic, err := b.fill(filepath.Dir(page))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if pic != nil {
			pictures = append(pictures, *pic)
		}
		if b.kind != "picture" { // pictures have no lines of their own in Markdown
			inner = append(append([]string{""}, inner...), "")
		}
		out = append(append(out, inner...), blockEnds)
		i += n + 1
	}
	return append([]filled{{page, []byte(strings.Join(out, "\n"))}}, pictures...), nil
}

// figures describe what a block shows; they come from its first comment.
type figures struct {
	kind, picture                      string
	files, modes, variants, columnList []string
}

// parseFigures returns nil for a line that begins no block.
func parseFigures(line string) (*figures, error) {
	body, ok := strings.CutPrefix(line, blockBegins)
	body, closed := strings.CutSuffix(body, " -->")
	kind, rest, colon := strings.Cut(body, ":")
	if !ok || !closed || !colon || !slices.Contains([]string{"table", "medians", "picture"}, kind) {
		return nil, nil
	}
	b := &figures{kind: kind}
	first, rest, _ := strings.Cut(rest, ";")
	if b.files = strings.Fields(first); kind == "picture" {
		b.picture, b.files = strings.TrimSpace(first), nil
	}
	for field := range strings.SplitSeq(rest, ";") {
		key, value, _ := strings.Cut(field, ":")
		names := strings.Split(value, ",")
		for i := range names {
			names[i] = strings.TrimSpace(names[i])
		}
		switch key = strings.TrimSpace(key); {
		case key == "":
		case key == "of" && kind == "picture":
			b.files = strings.Fields(value)
		case key == "modes":
			b.modes = names
		case key == "variants":
			b.variants = names
		case key == "columns" && kind == "table":
			b.columnList = names
		default:
			return nil, fmt.Errorf("a %s has no %q", kind, key)
		}
	}
	if len(b.files) == 0 {
		return nil, fmt.Errorf("%s without a file", kind)
	}
	return b, nil
}

// A source is a report that a block shows.
type source struct {
	file string
	*Report
}

// fill returns the lines of the block, and its picture.
func (b *figures) fill(dir string) (lines []string, picture *filled, err error) {
	var from []source
	names, err := expand(dir, b.files)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range names {
		r, err := loadReport(filepath.Join(dir, f))
		if err != nil {
			return nil, nil, err
		}
		r.Rows = slices.DeleteFunc(r.Rows, func(row Row) bool {
			return row.Error != "" || b.modes != nil && !slices.Contains(b.modes, row.Mode) || b.variants != nil && !slices.Contains(b.variants, row.Variant)
		})
		if len(r.Rows) == 0 {
			return nil, nil, fmt.Errorf("no column of %s is named", f)
		}
		from = append(from, source{f, r})
	}
	switch b.kind {
	case "table":
		lines, err = b.table(from)
	case "medians":
		lines, err = medians(from), nil
	case "picture":
		all := &Report{}
		for _, s := range from {
			all.Rows = append(all.Rows, s.Rows...)
		}
		var svg bytes.Buffer
		if err := writeSVG(&svg, all); err != nil {
			return nil, nil, err
		}
		picture = &filled{filepath.Join(dir, b.picture), svg.Bytes()}
		lines = []string{fmt.Sprintf("![%s: medians, fused and unfused](%s)", layoutOf(all).title, b.picture)}
	}
	if err != nil {
		return nil, nil, err
	}
	if b.kind != "picture" {
		lines = append(append(lines, ""), origins(from)...)
	}
	return lines, picture, nil
}

// expand replaces names with a star by the existing files, in the order of the suites.
func expand(dir string, names []string) (files []string, err error) {
	for _, name := range names {
		if !strings.Contains(name, "*") {
			files = append(files, name)
			continue
		}
		found, err := filepath.Glob(filepath.Join(dir, name))
		if err != nil || len(found) == 0 {
			return nil, fmt.Errorf("there is no file %s", name)
		}
		order := func(file string) int {
			suite, _, _ := strings.Cut(filepath.Base(file), "-")
			return slices.Index(suiteNames(suites), suite)
		}
		slices.SortStableFunc(found, func(a, b string) int { return order(a) - order(b) })
		for _, f := range found {
			files = append(files, filepath.ToSlash(filepath.Join(filepath.Dir(name), filepath.Base(f))))
		}
	}
	return files, nil
}

// table returns a table with a row for each row of the reports.
func (b *figures) table(from []source) ([]string, error) {
	var all []Row
	for _, s := range from {
		all = append(all, s.Rows...)
	}
	l := layoutOf(&Report{Rows: all})
	known := append([]column{
		{"suite", func(r Row) string { return r.Suite }, nil},
		{"dtype", func(r Row) string { return r.DType }, nil},
		{"build", nil, nil}, // of the report
	}, suiteColumns...)
	if t, ok := tables[all[0].Suite]; ok {
		known = append(known[:3:3], t.columns...)
	}
	if b.columnList != nil {
		l.columns = nil
		for _, name := range b.columnList {
			i := slices.IndexFunc(known, func(c column) bool { return c.head == name })
			if i < 0 {
				return nil, fmt.Errorf("no column %q: there are %s", name, strings.Join(layout{columns: known}.heads(), ", "))
			}
			l.columns = append(l.columns, known[i])
		}
	}
	var table [][]string
	for _, s := range from {
		for _, row := range s.Rows {
			var cells []string
			for _, c := range l.columns {
				if c.head == "build" {
					cells = append(cells, s.Machine.Build)
					continue
				}
				cells = append(cells, c.cell(row))
			}
			table = append(table, cells)
		}
	}
	return markdownTable(l.heads(), table), nil
}

// pyTorch is the device in reports that scripts/gpu_torch.py writes.
const pyTorch = "PyTorch"

// medians returns a table with a row for each suite, variant and mode, and a column for each
// device and build. It names the mode unless it is fused, and where dtypes differ the dtype unless
// it is float32. Each mode of PyTorch has a column.
func medians(from []source) []string {
	dtypes := map[string]bool{}
	for _, s := range from {
		for _, row := range s.Rows {
			dtypes[row.DType] = true
		}
	}
	type key struct{ suite, variant string }
	var keys []key
	var wheres []string
	ms := map[key]map[string]string{}
	for _, s := range from {
		for _, row := range s.Rows {
			k := key{row.Suite, row.Variant}
			where := row.Device
			switch {
			case where == pyTorch: // its modes are contestants of their own
				where += ", " + row.Mode
			case row.Mode != fused:
				k.variant += ", " + row.Mode
			}
			if len(dtypes) > 1 && row.DType != millrace.Float32.String() {
				k.variant += ", " + row.DType
			}
			if s.Machine.Build == "without cgo" {
				where += ", without cgo"
			}
			if ms[k] == nil {
				keys, ms[k] = append(keys, k), map[string]string{}
			}
			if !slices.Contains(wheres, where) {
				wheres = append(wheres, where)
			}
			ms[k][where] = short(row.MedianMS)
		}
	}
	var table [][]string
	for _, k := range keys {
		cells := []string{k.suite, k.variant}
		for _, w := range wheres {
			cells = append(cells, ms[k][w])
		}
		table = append(table, cells)
	}
	return markdownTable(append([]string{"suite", "variant"}, wheres...), table)
}

// originWidth is the width of lines in documents.
const originWidth = 150

// maxLinks is the most files that get a link each.
const maxLinks = 4

// origins returns lines that say from which files the figures are, and where and when they were
// measured.
func origins(from []source) (lines []string) {
	var machines []string
	files := map[string][]string{}
	for _, s := range from {
		m := s.Machine.String()
		if files[m] == nil {
			machines = append(machines, m)
		}
		name := strings.TrimSuffix(filepath.Base(s.file), ".json")
		files[m] = append(files[m], fmt.Sprintf("[%s](%s)", name, s.file))
	}
	for _, m := range machines {
		line := "-"
		of := strings.Join(files[m], ", ")
		if len(files[m]) > maxLinks {
			of = fmt.Sprintf("%s and %d files more beside it", files[m][0], len(files[m])-1)
		}
		for _, word := range strings.Fields(of + ": " + markdownText(m) + ".") {
			if len(line)+len(word) > originWidth {
				lines = append(lines, line)
				line = " "
			}
			line += " " + word
		}
		lines = append(lines, line)
	}
	return lines
}

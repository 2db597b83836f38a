package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
	"golang.org/x/perf/benchmath"

	"github.com/millrace-go/millrace/internal/sniff"
)

// setupCompare sets up fusebench compare, which compares two reports in JSON, as benchstat does.
func setupCompare() ([]cli.Flag, action) {
	var format, out string
	formats := []string{"markdown", "table"}
	flags := []cli.Flag{
		&cli.StringFlag{Name: "format", Value: "table", Destination: &format, Validator: wordOf(formats...), Usage: "`format` of the result: " + strings.Join(formats, ", ")},
		outFlag(&out),
	}
	return flags, func(io streams, args []string) error {
		if len(args) != 2 {
			return usageError("want two reports of -format json, OLD and NEW, got %d", len(args))
		}
		before, err := loadReport(args[0])
		if err != nil {
			return err
		}
		after, err := loadReport(args[1])
		if err != nil {
			return err
		}
		var b bytes.Buffer
		compareReports(before, after).write(&b, format)
		return deliverBytes(io.out, b.Bytes(), out)
	}
}

// maxReport is far more than the size of a report.
const maxReport = 256 << 20

func loadReport(file string) (*Report, error) {
	f, err := sniff.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxReport))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	r := new(Report)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s is not a report of -format json: %w", file, sniff.With(err, data, sniff.JSON))
	}
	seen := map[string]bool{}
	for i := range r.Rows {
		row := &r.Rows[i]
		if seen[row.identity()] {
			return nil, fmt.Errorf("%s: row %d repeats %s", file, i+1, row.identity())
		}
		seen[row.identity()] = true
		if row.Suite == "" {
			return nil, fmt.Errorf("%s is not a report of -format json: row %d has no suite", file, i+1)
		}
		if row.Error == "" && len(row.SamplesMS) == 0 {
			return nil, fmt.Errorf("%s: row %d (%s) has no samples_ms: an older fusebench wrote it, or its suite has none", file, i+1, row.identity())
		}
		for _, ms := range row.SamplesMS {
			if !(ms > 0) || math.IsInf(float64(ms), 0) {
				return nil, fmt.Errorf("%s: row %d (%s): %v ms is not a time", file, i+1, row.identity(), ms)
			}
			row.seconds = append(row.seconds, float64(ms)/1e3)
		}
	}
	if len(r.Rows) == 0 {
		return nil, fmt.Errorf("%s has no rows", file)
	}
	return r, nil
}

// identity returns a key that rows of two reports share if they time the same thing.
func (r *Row) identity() string {
	parts := []string{r.Suite, r.Device, r.Variant, r.Mode, shapeText(r.Shape), r.DType}
	if r.Threads > 0 {
		parts = append(parts, fmt.Sprintf("threads=%d", r.Threads))
	}
	if r.Train != nil {
		parts = append(parts, r.Train.How)
	}
	if r.Serve != nil {
		parts = append(parts, fmt.Sprintf("goroutines=%d", r.Serve.Goroutines))
	}
	if r.Chain != nil {
		parts = append(parts, fmt.Sprintf("ops=%d", r.Chain.Ops))
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

// comparison is the comparison of two reports.
type comparison struct {
	before, after Machine
	rows          []compared
	ratio         float64  // geometric mean of new/old
	notes         []string // about rows that cannot be compared
}

type compared struct {
	name       string
	old, new   benchmath.Summary
	delta      string // ~ if the difference may be chance
	p          float64
	nOld, nNew int
}

func compareReports(before, after *Report) *comparison {
	c := &comparison{before: before.Machine, after: after.Machine}
	if a, b := before.Machine, after.Machine; a.CPU != b.CPU || a.Cores != b.Cores || a.OS != b.OS {
		c.notes = append(c.notes, fmt.Sprintf("The machines differ: %s; %s.", before.Machine, after.Machine))
	}
	of := map[string]*Row{}
	for i := range after.Rows {
		of[after.Rows[i].identity()] = &after.Rows[i]
	}
	logs := 0.0
	for i := range before.Rows {
		old := &before.Rows[i]
		name := old.identity()
		row := of[name]
		delete(of, name)
		switch {
		case row == nil:
			c.notes = append(c.notes, name+" is in the old report only.")
			continue
		case old.Error != "" || row.Error != "":
			c.notes = append(c.notes, fmt.Sprintf("%s has no times: old %q, new %q.", name, old.Error, row.Error))
			continue
		}
		x := compare(old.seconds, row.seconds)
		x.name = name
		c.rows = append(c.rows, x)
		logs += math.Log(x.new.Center / x.old.Center)
	}
	for i := range after.Rows {
		if name := after.Rows[i].identity(); of[name] != nil {
			c.notes = append(c.notes, name+" is in the new report only.")
		}
	}
	c.ratio = math.Exp(logs / float64(len(c.rows)))
	return c
}

// compare compares two samples by the Mann-Whitney test, which assumes nothing about the
// distribution of times. It does not pair rounds, because the rounds of two reports did not run
// together.
func compare(old, new []float64) compared {
	a := benchmath.NewSample(slices.Clone(old), &benchmath.DefaultThresholds)
	b := benchmath.NewSample(slices.Clone(new), &benchmath.DefaultThresholds)
	how := benchmath.AssumeNothing
	x := compared{old: how.Summary(a, 0.95), new: how.Summary(b, 0.95), nOld: len(old), nNew: len(new)}
	test := how.Compare(a, b)
	x.delta, x.p = test.FormatDelta(x.old.Center, x.new.Center), test.P
	return x
}

func (c *comparison) write(w io.Writer, format string) {
	heads := []string{"", "old ms", "±", "new ms", "±", "change", "p", "runs"}
	var table [][]string
	for _, x := range c.rows {
		table = append(table, []string{
			x.name, short(number(x.old.Center * 1e3)), x.old.PctRangeString(), short(number(x.new.Center * 1e3)), x.new.PctRangeString(),
			x.delta, fmt.Sprintf("%.3f", x.p), fmt.Sprintf("%d, %d", x.nOld, x.nNew),
		})
	}
	if len(c.rows) > 1 {
		table = append(table, []string{"geometric mean", "", "", "", "", fmt.Sprintf("%+.2f%%", (c.ratio-1)*100), "", ""})
	}
	fmt.Fprintf(w, "Old: %s\nNew: %s\n\n", c.before, c.after)
	if format == "markdown" {
		fmt.Fprintln(w, strings.Join(markdownTable(heads, table), "\n"))
	} else {
		tabulate(w, 0, append([][]string{heads}, table...))
	}
	fmt.Fprintln(w)
	for _, n := range c.notes {
		fmt.Fprintln(w, n)
	}
	fmt.Fprintln(w, "~: the difference may be chance (p above 0.05, by Mann and Whitney's test). ±: 95 % interval of the median.")
}

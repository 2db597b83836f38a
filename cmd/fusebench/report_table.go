package main

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
)

// A column is one column of the table.
type column struct {
	head string
	cell func(Row) string
}

var who = []column{
	{"device", func(r Row) string { return r.Device }},
	{"variant", func(r Row) string { return r.Variant }},
	{"mode", func(r Row) string { return r.Mode }},
	{"tier", func(r Row) string { return r.Tier }},
}

var geluColumns = append(who[:len(who):len(who)],
	column{"median ms", func(r Row) string { return short(r.MedianMS) }},
	column{"min ms", func(r Row) string { return short(r.MinMS) }},
	column{"kernels", func(r Row) string { return short(number(r.Kernels)) }},
	column{"moved MB", func(r Row) string { return short(number(float64(r.BytesRead+r.BytesWritten) / 1e6)) }},
	column{"GB/s", func(r Row) string { return short(r.GBPerS) }},
	column{"× copy", func(r Row) string { return short(r.CopyRatio) + interval(r.CopyRatioLo, r.CopyRatioHi) }},
	column{"× faster than unfused", func(r Row) string {
		if r.Mode != "fused" {
			return ""
		}
		return short(r.SpeedupVsUnfused) + interval(r.SpeedupLo, r.SpeedupHi)
	}},
	column{"max error", func(r Row) string { return scientific(r.MaxAbsErr) }},
	column{"first run ms", func(r Row) string { return short(r.ColdMS) }},
	column{"runs", func(r Row) string { return fmt.Sprint(r.Runs) }},
)

var chainColumns = append(who[:len(who):len(who)],
	column{"median µs", func(r Row) string { return short(r.MedianMS * 1e3) }},
	column{"min µs", func(r Row) string { return short(r.MinMS * 1e3) }},
	column{"kernels", func(r Row) string { return short(number(r.Kernels)) }},
	column{"record ns/op", func(r Row) string { return chainCell(r, func(c *ChainFigures) number { return c.RecordNSPerOp }) }},
	column{"÷ 64-byte alloc", func(r Row) string { return chainCell(r, func(c *ChainFigures) number { return c.RecordPerAlloc }) }},
	column{"allocs/op", func(r Row) string { return chainCell(r, func(c *ChainFigures) number { return c.AllocsPerOp }) }},
	column{"× faster than Go loops", func(r Row) string { return chainCell(r, func(c *ChainFigures) number { return c.SpeedupVsGo }) }},
	column{"first run ms", func(r Row) string { return short(r.ColdMS) }},
	column{"one compile ms", func(r Row) string { return chainCell(r, func(c *ChainFigures) number { return c.CompileMS }) }},
	column{"runs", func(r Row) string { return fmt.Sprint(r.Runs) }},
)

func chainCell(r Row, get func(*ChainFigures) number) string {
	if r.Chain == nil {
		return ""
	}
	return short(get(r.Chain))
}

// writeTable writes the report for people: a line about the machine, the
// table, the copy that times are compared with, and what went wrong.
func writeTable(w io.Writer, r *Report) error {
	m := r.Machine
	fmt.Fprintf(w, "%s, %d cores, %s, %s, millrace %s\n", m.CPU, m.Cores, m.OS, m.Go, m.Millrace)
	columns := geluColumns
	if len(r.Rows) > 0 {
		first := r.Rows[0]
		fmt.Fprintf(w, "%s, shape %s, %s\n", first.Suite, shapeText(first.Shape), first.DType)
		if first.Suite == "chain" {
			columns = chainColumns
		}
	}
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, c := range columns {
		fmt.Fprintf(tw, "%s\t", c.head)
	}
	fmt.Fprintln(tw)
	for _, row := range r.Rows {
		if row.Error != "" {
			continue
		}
		for _, c := range columns {
			fmt.Fprintf(tw, "%s\t", c.cell(row))
		}
		fmt.Fprintln(tw)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	return writeNotes(w, r)
}

func writeNotes(w io.Writer, r *Report) error {
	said := map[string]bool{}
	fmt.Fprintln(w)
	for _, row := range r.Rows {
		if row.Error != "" {
			fmt.Fprintf(w, "%s, %s, %s: %s\n", row.Device, row.Variant, row.Mode, row.Error)
		}
		if !row.CopyMS.missing() && !said[row.Device] {
			said[row.Device] = true
			fmt.Fprintf(w, "copy on %s: %s ms (%s)\n", row.Device, short(row.CopyMS), row.CopyKind)
		}
		if row.ExplorationsHot+row.CompilesHot+row.AllocsHot > 0 {
			fmt.Fprintf(w, "%s, %s, %s: not all runs were hot: %d explorations, %d compiles, %d new device allocations while timing\n",
				row.Device, row.Variant, row.Mode, row.ExplorationsHot, row.CompilesHot, row.AllocsHot)
		}
	}
	_, err := fmt.Fprintln(w, "× copy and × faster: median of the rounds' ratios [95 % interval].")
	return err
}

// short writes three significant digits for people.
func short(n number) string {
	f := float64(n)
	switch {
	case n.missing():
		return "-"
	case f == math.Trunc(f) && math.Abs(f) < 1e6:
		return fmt.Sprintf("%.0f", f)
	case math.Abs(f) >= 100:
		return fmt.Sprintf("%.0f", f)
	case math.Abs(f) >= 10:
		return fmt.Sprintf("%.1f", f)
	case math.Abs(f) >= 0.1:
		return fmt.Sprintf("%.2f", f)
	}
	return fmt.Sprintf("%.2g", f)
}

func scientific(n number) string {
	if n.missing() {
		return "-"
	}
	return fmt.Sprintf("%.1e", float64(n))
}

func interval(lo, hi number) string {
	if lo.missing() || hi.missing() {
		return ""
	}
	return fmt.Sprintf(" [%s %s]", short(lo), short(hi))
}

package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/millrace-go/millrace/internal/paired"
)

// A column is one column of the table.
type column struct {
	head string
	cell func(Row) string
	when func([]Row) bool // which tables have it; nil: all
}

// some returns a condition: the table has the figure if at least one row has it.
func some(get func(Row) number) func([]Row) bool {
	return func(rows []Row) bool {
		return slices.ContainsFunc(rows, func(r Row) bool { return r.Error == "" && !get(r).missing() })
	}
}

// withInterval makes a column of a ratio that only some suites have.
func withInterval(head string, get func(Row) (mid, lo, hi number)) column {
	mid := func(r Row) number { n, _, _ := get(r); return n }
	return column{head, func(r Row) string {
		n, lo, hi := get(r)
		if n.missing() {
			return ""
		}
		return short(n) + interval(r, lo, hi)
	}, some(mid)}
}

func gflops(r Row) number { return r.GFLOPS }

// mixed reports that the rows have different shapes.
func mixed(rows []Row) bool {
	return slices.ContainsFunc(rows, func(r Row) bool { return !slices.Equal(r.Shape, rows[0].Shape) })
}

var who = []column{
	{"device", func(r Row) string { return r.Device }, nil},
	{"variant", func(r Row) string { return r.Variant }, nil},
	{"mode", func(r Row) string { return r.Mode }, nil},
	{"tier", func(r Row) string { return r.Tier }, nil},
}

var suiteColumns = append(who[:len(who):len(who)],
	column{"shape", func(r Row) string { return shapeText(r.Shape) }, mixed},
	column{"median ms", func(r Row) string { return short(r.MedianMS) }, nil},
	column{"min ms", func(r Row) string { return short(r.MinMS) }, nil},
	column{"kernels", func(r Row) string { return short(number(r.Kernels)) }, nil},
	column{"moved MB", func(r Row) string { return megabytes(r.BytesRead + r.BytesWritten) }, nil},
	column{"peak MB", func(r Row) string { return megabytes(r.PeakBytes) }, nil},
	column{"GB/s", func(r Row) string { return short(r.GBPerS) }, func(rows []Row) bool { return !some(gflops)(rows) }},
	column{"GFLOP/s", func(r Row) string { return short(r.GFLOPS) }, some(gflops)},
	withInterval("OpenBLAS ÷ this", func(r Row) (_, _, _ number) { return r.VsOpenBLAS, r.VsOpenBLASLo, r.VsOpenBLASHi }),
	withInterval("epilogue adds", func(r Row) (_, _, _ number) { return r.EpilogueCost, r.EpilogueCostLo, r.EpilogueCostHi }),
	withInterval("products' share", func(r Row) (_, _, _ number) { return r.MatMulShare, r.MatMulShareLo, r.MatMulShareHi }),
	withInterval("× read", func(r Row) (_, _, _ number) { return r.ReadRatio, r.ReadRatioLo, r.ReadRatioHi }),
	column{"× copy", func(r Row) string { return short(r.CopyRatio) + interval(r, r.CopyRatioLo, r.CopyRatioHi) }, nil},
	column{"× faster than unfused", func(r Row) string {
		if r.Mode != fused {
			return ""
		}
		return short(r.SpeedupVsUnfused) + interval(r, r.SpeedupLo, r.SpeedupHi)
	}, nil},
	withInterval("of the peak", func(r Row) (_, _, _ number) { return r.PeakShare, r.PeakShareLo, r.PeakShareHi }),
	column{"bound by", func(r Row) string { return r.PeakKind }, some(func(r Row) number { return r.PeakShare })},
	withInterval("× faster than default", func(r Row) (_, _, _ number) { return r.VsDefault, r.VsDefaultLo, r.VsDefaultHi }),
	column{"max error", func(r Row) string { return scientific(r.MaxAbsErr) }, nil},
	column{"first run ms", func(r Row) string { return short(r.ColdMS) }, nil},
	column{"runs", func(r Row) string { return fmt.Sprint(r.Runs) }, nil},
)

var chainColumns = append(who[:len(who):len(who)],
	column{"median µs", func(r Row) string { return short(r.MedianMS * 1e3) }, nil},
	column{"min µs", func(r Row) string { return short(r.MinMS * 1e3) }, nil},
	column{"kernels", func(r Row) string { return short(number(r.Kernels)) }, nil},
	chainColumn("record ns/op", func(c *ChainFigures) string { return short(c.RecordNSPerOp) }),
	chainColumn("÷ 64-byte alloc", func(c *ChainFigures) string { return short(c.RecordPerAlloc) }),
	chainColumn("allocs/op", func(c *ChainFigures) string { return short(c.AllocsPerOp) }),
	chainColumn("× faster than Go loops", func(c *ChainFigures) string { return short(c.SpeedupVsGo) }),
	column{"first run ms", func(r Row) string { return short(r.ColdMS) }, nil},
	chainColumn("one compile ms", func(c *ChainFigures) string { return short(c.CompileMS) }),
	column{"runs", func(r Row) string { return fmt.Sprint(r.Runs) }, nil},
)

// columnOf makes columns of figures that only one suite has.
func columnOf[F any](figures func(Row) *F) func(head string, get func(*F) string) column {
	return func(head string, get func(*F) string) column {
		return column{head, func(r Row) string {
			if f := figures(r); f != nil {
				return get(f)
			}
			return ""
		}, nil}
	}
}

var (
	chainColumn = columnOf(func(r Row) *ChainFigures { return r.Chain })
	serveColumn = columnOf(func(r Row) *ServeFigures { return r.Serve })
	trainColumn = columnOf(func(r Row) *TrainFigures { return r.Train })
	tinyColumn  = columnOf(func(r Row) *TinyFigures { return r.Tiny })
)

var serveColumns = append(who[:len(who):len(who)],
	serveColumn("answers/s", func(f *ServeFigures) string { return short(f.PerSecond) }),
	column{"× one goroutine", func(r Row) string {
		if r.Serve == nil || r.Serve.VsOne.missing() {
			return ""
		}
		return short(r.Serve.VsOne) + interval(r, r.Serve.VsOneLo, r.Serve.VsOneHi)
	}, nil},
	column{"median µs", func(r Row) string { return short(r.MedianMS * 1e3) }, nil},
	serveColumn("99 % µs", func(f *ServeFigures) string { return short(f.P99MS * 1e3) }),
	column{"÷ median", func(r Row) string { return short(largestP99(r) / r.MedianMS) }, nil},
	serveColumn("longest ms", func(f *ServeFigures) string { return short(f.MaxMS) }),
	serveColumn("given up", func(f *ServeFigures) string { return fmt.Sprint(f.GivenUp) }),
	serveColumn("late ms, 99 %", func(f *ServeFigures) string { return short(f.LateP99MS) }),
	serveColumn("over a slice", func(f *ServeFigures) string {
		if f.OverSlice == nil {
			return ""
		}
		return fmt.Sprintf("%d of %d", *f.OverSlice, f.Answers)
	}),
	column{"runs", func(r Row) string { return fmt.Sprint(r.Runs) }, nil},
)

var trainColumns = append(who[:len(who):len(who)],
	trainColumn("how", func(f *TrainFigures) string { return f.How }),
	column{"median ms", func(r Row) string { return short(r.MedianMS) }, nil},
	column{"min ms", func(r Row) string { return short(r.MinMS) }, nil},
	column{"× faster than unfused", func(r Row) string { return short(r.SpeedupVsUnfused) + interval(r, r.SpeedupLo, r.SpeedupHi) }, nil},
	trainColumn("ops", func(f *TrainFigures) string { return fmt.Sprint(f.Ops) }),
	column{"kernels", func(r Row) string { return short(number(r.Kernels)) }, nil},
	column{"moved MB", func(r Row) string { return megabytes(r.BytesRead + r.BytesWritten) }, nil},
	column{"peak MB", func(r Row) string { return megabytes(r.PeakBytes) }, nil},
	column{"new allocations", func(r Row) string { return fmt.Sprint(r.AllocsHot) }, nil},
	trainColumn("loss", func(f *TrainFigures) string { return short(f.Loss) }),
	column{"off float64's", func(r Row) string { return scientific(r.MaxAbsErr) }, nil},
	column{"first steps ms", func(r Row) string { return short(r.ColdMS) }, nil},
	column{"runs", func(r Row) string { return fmt.Sprint(r.Runs) }, nil},
)

var peakColumns = []column{
	{"of", func(r Row) string { return r.Variant }, nil},
	{"threads", func(r Row) string { return fmt.Sprint(r.Threads) }, nil},
	{"GFLOP/s", func(r Row) string { return orBlank(r.GFLOPS) }, nil},
	{"GB/s", func(r Row) string { return orBlank(r.GBPerS) }, nil},
	{"runs", func(r Row) string { return fmt.Sprint(r.Runs) }, nil},
}

// orBlank returns an empty text for a missing figure.
func orBlank(n number) string {
	if n.missing() {
		return ""
	}
	return short(n)
}

var tinyColumns = append(who[:len(who):len(who)],
	tinyColumn("median ns", func(f *TinyFigures) string { return short(f.NS) }),
	column{"min ns", func(r Row) string { return short(r.MinMS * 1e6) }, nil},
	column{"× plain Go", func(r Row) string {
		if r.Tiny == nil || r.Mode == plain {
			return ""
		}
		return short(r.Tiny.VsGo) + interval(r, r.Tiny.VsGoLo, r.Tiny.VsGoHi)
	}, nil},
	column{"ns beyond 1.5 × Go", func(r Row) string {
		if r.Tiny == nil || r.Mode == plain {
			return ""
		}
		return short(r.Tiny.BeyondNS)
	}, nil},
	tinyColumn("allocations", func(f *TinyFigures) string { return short(f.Allocs) }),
	column{"kernels", func(r Row) string { return short(number(r.Kernels)) }, nil},
	tinyColumn("one call", func(f *TinyFigures) string { return short(f.Calls) }),
	column{"runs", func(r Row) string { return fmt.Sprint(r.Runs) }, nil},
)

// largestP99 returns the figure of the goroutine with the largest one.
func largestP99(r Row) number {
	switch {
	case r.Serve == nil:
		return absent
	case r.Serve.WorstP99MS.missing():
		return r.Serve.P99MS
	}
	return r.Serve.WorstP99MS
}

// tables are the columns of suites that have their own, and the notes under them.
var tables = map[string]struct {
	columns []column
	note    string
}{
	"chain": {chainColumns, ratioNote},
	"peaks": {peakColumns, "GB/s: of what is read and written together. A peak is the median of all runs."},
	"train": {trainColumns, ratioNote + "\nmedian and min: of whole steps, loss, gradients and update. peak: weights, moments and inputs included."},
	"tiny":  {tinyColumns, fmt.Sprintf("× plain Go: median of the rounds' ratios [95 %% interval], or (lowest to highest) of fewer than %d rounds. looped: in calls of RunN(%d).", paired.LeastPairs, loopLength)},
	"serve": {serveColumns, fmt.Sprintf("× one goroutine: median of the rounds' ratios [95 %% interval], or (lowest to highest) of fewer than %d rounds. ÷ median: the 99th percentile of the goroutine that fares worst.\nlate: from the end of a request's context until its goroutine knew. A slice is %v.", paired.LeastPairs, waitSlice)},
}

var ratioNote = fmt.Sprintf("× copy and × faster: median of the rounds' ratios [95 %% interval], or (lowest to highest) of fewer than %d rounds.", paired.LeastPairs)

// peakNote is the note under tables with such a share.
const peakNote = "of the peak: the least time by what bounds it (its multiplications and additions, or copying or reading its bytes, as fusebench peaks has them) ÷ this."

// A layout is the form of a report for people: its title, its columns, and the notes under the
// table.
type layout struct {
	title   string
	columns []column
	note    string
}

func layoutOf(r *Report) layout {
	l := layout{columns: suiteColumns, note: ratioNote}
	if len(r.Rows) > 0 {
		first := r.Rows[0]
		size := "shape " + shapeText(first.Shape)
		if mixed(r.Rows) {
			size = "several shapes"
		}
		if len(first.Shape) == 0 {
			size = "sizes of their own"
		}
		if first.DType != "" {
			size += ", " + first.DType
		}
		l.title = first.Suite + ", " + size
		if t, ok := tables[first.Suite]; ok {
			l.columns, l.note = t.columns, t.note
		}
	}
	l.columns = slices.DeleteFunc(slices.Clone(l.columns), func(c column) bool { return c.when != nil && !c.when(r.Rows) })
	if some(func(r Row) number { return r.PeakShare })(r.Rows) {
		l.note += "\n" + peakNote
	}
	return l
}

// heads returns the heads of the columns.
func (l layout) heads() (heads []string) {
	for _, c := range l.columns {
		heads = append(heads, c.head)
	}
	return heads
}

// cells returns the table: one row for each row of the report that has figures.
func (l layout) cells(r *Report) (table [][]string) {
	for _, row := range r.Rows {
		if row.Error != "" {
			continue
		}
		var cells []string
		for _, c := range l.columns {
			cells = append(cells, c.cell(row))
		}
		table = append(table, cells)
	}
	return table
}

// tabulate writes lines of cells in columns, flags being tabwriter's.
func tabulate(w io.Writer, flags uint, lines [][]string) error {
	tw, end := tabwriter.NewWriter(w, 0, 0, 2, ' ', flags), "\n"
	if flags == tabwriter.AlignRight { // the last column needs an end, too
		end = "\t\n"
	}
	for _, cells := range lines {
		fmt.Fprint(tw, strings.Join(cells, "\t")+end)
	}
	return tw.Flush()
}

// writeTable writes the report for people: a line about the machine, the table, the copy that
// times are compared with, and the errors.
func writeTable(w io.Writer, r *Report) error {
	l := layoutOf(r)
	fmt.Fprintln(w, r.Machine)
	if l.title != "" {
		fmt.Fprintln(w, l.title)
	}
	fmt.Fprintln(w)
	if err := tabulate(w, tabwriter.AlignRight, append([][]string{l.heads()}, l.cells(r)...)); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, line := range append(notes(r, l), sentences(r)...) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// notes returns the lines under a table.
func notes(r *Report, l layout) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	said := map[string]bool{}
	once := func(what string, ms number, kind string) { // for the first row that has it
		if !ms.missing() && !said[what] {
			said[what] = true
			say("%s: %s ms%s", what, short(ms), kind)
		}
	}
	for _, row := range r.Rows {
		if row.Error != "" {
			say("%s, %s, %s: %s", row.Device, row.Variant, row.Mode, row.Error)
		}
		once("copy on "+row.Device+ofBytes(r.Rows, row), row.CopyMS, " ("+row.CopyKind+")")
		once("read on "+row.Device, row.ReadMS, "")
		once("OpenBLAS on "+row.Device+", "+shapeText(row.Shape), row.OpenBLASMS, "")
		if row.ExplorationsHot+row.CompilesHot+row.AllocsHot > 0 {
			say("%s, %s, %s: not all runs were hot: %d explorations, %d compiles, %d new device allocations while timing",
				row.Device, row.Variant, row.Mode, row.ExplorationsHot, row.CompilesHot, row.AllocsHot)
		}
	}
	return append(lines, strings.Split(l.note, "\n")...)
}

// ofBytes says how many bytes a copy copied, if that differs between rows.
func ofBytes(rows []Row, row Row) string {
	if !slices.ContainsFunc(rows, func(r Row) bool { return r.Error == "" && r.IOBytes != row.IOBytes }) {
		return ""
	}
	return fmt.Sprintf(", %s MB", megabytes(row.IOBytes/2))
}

func megabytes(n int64) string { return short(number(float64(n) / 1e6)) }

// short writes three significant digits, for people.
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

// interval returns the confidence interval of a median; with too few rounds it is the range.
func interval(r Row, lo, hi number) string {
	switch {
	case lo.missing() || hi.missing():
		return ""
	case r.Runs < paired.LeastPairs:
		return fmt.Sprintf(" (%s to %s)", short(lo), short(hi))
	}
	return fmt.Sprintf(" [%s %s]", short(lo), short(hi))
}

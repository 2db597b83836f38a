package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/paired"
	"github.com/millrace-go/millrace/plancache"
)

// startReport is the report of fusebench start.
type startReport struct {
	Machine Machine     `json:"machine"`
	Program string      `json:"program"`
	Ops     int         `json:"ops"`
	N       int         `json:"n"`
	IdleMS  number      `json:"idle_ms"`
	Rows    []*startRow `json:"rows"`
}

// startRow is one device with one of startCaches. It has medians over processes, and sums of
// counters.
type startRow struct {
	Device string `json:"device"`
	Cache  string `json:"cache"` // see startCaches
	Runs   int    `json:"runs"`

	OpenMS  number `json:"open_ms"`
	FirstMS number `json:"first_ms"`
	NextMS  number `json:"second_ms"`
	HotMS   number `json:"hot_ms"`
	NewMS   number `json:"new_chain_ms"` // a chain never seen before, in a process that ran others
	// OpenFirstMS is the time of opening and the first result together. BoundMS is its limit: 1.3
	// times the hot time plus 2 ms.
	OpenFirstMS number `json:"open_first_ms"`
	WorstMS     number `json:"open_first_worst_ms"`
	BoundMS     number `json:"bound_ms"`
	// ProcessMS is the time from before the process was started to its first result.
	ProcessMS number `json:"process_ms"`

	Explorations int64 `json:"explorations"`
	Compiles     int64 `json:"compiles"`
	Misses       int64 `json:"cache_misses"`

	dir     string
	sum     float64
	process []float64
	figures []startFigures
}

// time runs one process. The first process with a warm cache or a bundle is not counted: it fills
// the cache, from which the bundle is made. Each process with an empty cache gets another one.
func (r *startRow) time(s *start, run int) error {
	dir, bundle := r.dir, ""
	if r.Cache == "empty" {
		dir = filepath.Join(dir, fmt.Sprint(run))
	} else if run == 0 {
		if _, _, err := s.process(r.Device, dir, ""); err != nil {
			return err
		}
	}
	if r.Cache == "bundle" {
		bundle = dir + ".plans"
		if run == 0 {
			if err := bundleOf(dir, bundle); err != nil {
				return err
			}
		}
		dir = plancache.Off
	}
	f, took, err := s.process(r.Device, dir, bundle)
	if err != nil {
		return err
	}
	r.figures, r.process = append(r.figures, f), append(r.process, took)
	r.sum = f.Sum
	return nil
}

// bundleOf makes a bundle from a cache directory.
func bundleOf(dir, file string) error {
	var buf bytes.Buffer
	if err := millrace.ExportPlans(&buf, millrace.PlanFilter{Cache: dir}); err != nil {
		return err
	}
	return os.WriteFile(file, buf.Bytes(), 0o600)
}

// process starts a process of this program that runs the chain. took is the milliseconds from
// before the start to the first result.
func (s *start) process(device, cache, bundle string) (f startFigures, took float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return f, 0, err
	}
	args := []string{"start", "-" + startChild, "-device", device, "-cache", cache, "-idle", s.idle.String(),
		"-program", s.program, "-ops", fmt.Sprint(s.ops), "-n", fmt.Sprint(s.n)}
	if bundle != "" {
		args = append(args, "-bundle", bundle)
	}
	cmd := exec.Command(self, args...)
	cmd.Stderr = os.Stderr
	begin := time.Now()
	out, err := cmd.Output()
	if err != nil {
		return f, 0, err
	}
	if err := json.Unmarshal(out, &f); err != nil {
		return f, 0, fmt.Errorf("%w in %q", err, out)
	}
	return f, float64(f.EndNS-begin.UnixNano()) / 1e6, nil
}

func writeStartFigures(w io.Writer, f *startFigures) error {
	return json.NewEncoder(w).Encode(f)
}

// sumUp makes the row from its processes.
func (r *startRow) sumUp() {
	middle := func(get func(f *startFigures) float64) number {
		var xs []float64
		for i := range r.figures {
			xs = append(xs, get(&r.figures[i]))
		}
		return number(paired.Median(xs))
	}
	both := func(f *startFigures) float64 { return f.OpenMS + f.FirstMS }
	r.Runs = len(r.figures)
	r.OpenMS = middle(func(f *startFigures) float64 { return f.OpenMS })
	r.FirstMS = middle(func(f *startFigures) float64 { return f.FirstMS })
	r.HotMS = middle(func(f *startFigures) float64 { return f.HotMS })
	r.NextMS = middle(func(f *startFigures) float64 { return f.NextMS })
	r.NewMS = middle(func(f *startFigures) float64 { return f.NewMS })
	r.OpenFirstMS = middle(both)
	r.BoundMS = 1.3*r.HotMS + 2
	r.ProcessMS = number(paired.Median(r.process))
	for i := range r.figures {
		f := &r.figures[i]
		r.WorstMS = max(r.WorstMS, number(both(f)))
		r.Explorations, r.Compiles, r.Misses = r.Explorations+f.Explorations, r.Compiles+f.Compiles, r.Misses+f.Misses
	}
}

// startWriters are the formats of the report.
var startWriters = map[string]func(io.Writer, *startReport) error{
	"json": func(w io.Writer, r *startReport) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	},
	"table": writeStartTable,
}

func deliverStart(stdout io.Writer, r *startReport, format, out string) error {
	var buf bytes.Buffer
	if err := startWriters[format](&buf, r); err != nil {
		return err
	}
	return deliverBytes(stdout, buf.Bytes(), out)
}

var startColumns = []struct {
	head string
	cell func(r *startRow) string
}{
	{"device", func(r *startRow) string { return r.Device }},
	{"cache", func(r *startRow) string { return r.Cache }},
	{"open ms", func(r *startRow) string { return short(r.OpenMS) }},
	{"first ms", func(r *startRow) string { return short(r.FirstMS) }},
	{"together", func(r *startRow) string { return short(r.OpenFirstMS) }},
	{"worst", func(r *startRow) string { return short(r.WorstMS) }},
	{"second ms", func(r *startRow) string { return short(r.NextMS) }},
	{"hot ms", func(r *startRow) string { return short(r.HotMS) }},
	{"1.3 hot + 2", func(r *startRow) string { return short(r.BoundMS) }},
	{"process ms", func(r *startRow) string { return short(r.ProcessMS) }},
	{"new chain ms", func(r *startRow) string { return short(r.NewMS) }},
	{"explored", func(r *startRow) string { return fmt.Sprint(r.Explorations) }},
	{"compiled", func(r *startRow) string { return fmt.Sprint(r.Compiles) }},
	{"runs", func(r *startRow) string { return fmt.Sprint(r.Runs) }},
}

func writeStartTable(w io.Writer, r *startReport) error {
	m := r.Machine
	fmt.Fprintf(w, "%s, %d cores, %s, %s, millrace %s\n", m.CPU, m.Cores, m.OS, m.Go, m.Millrace)
	fmt.Fprintf(w, "chain of %d operations (%s), %d elements: medians of processes", r.Ops, r.Program, r.N)
	if r.IdleMS > 0 {
		fmt.Fprintf(w, " that wait %s ms between opening and beginning", short(r.IdleMS))
	}
	fmt.Fprint(w, "\n\n")
	lines := make([][]string, 1+len(r.Rows))
	for _, c := range startColumns {
		lines[0] = append(lines[0], c.head)
		for i, row := range r.Rows {
			lines[1+i] = append(lines[1+i], c.cell(row))
		}
	}
	return tabulate(w, tabwriter.AlignRight, lines)
}

package stream

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/profile"
	"github.com/millrace-go/millrace/internal/report"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Limits of a report. If there are more kernels, it shows those that took longest; of plans,
// those that ran most often.
const (
	reportKernels = 256
	reportPlans   = 256
)

// Report returns what the device knows about the work that it ran. Without Options.Report these
// are its counters, plans and kernels, without times.
func (d *Device) Report() report.Device {
	peaks := d.Peaks()
	r := report.Device{Name: d.Opts.Device, Description: d.Caps.Description, Closed: d.Closed.Load(),
		Flops: peaks.Flops, Bytes: peaks.Bytes, Counters: counters(d.Stats())}
	var state profile.State
	if p := d.Profile; p != nil {
		state = p.State()
		r.Opened, r.Now = p.Opened, micros(p.Opened, time.Now())
		r.Sampled = fmt.Sprintf("In runs 1, 3, 8, 16 and every %dth run of a list of launches, each launch is run and timed by itself. Each other run is assumed to take as long as the next timed run.",
			profile.Every)
	}
	x := reporting{d: d, r: &r, state: &state, at: make([]int, len(state.Kernels)), byKey: map[uint64]int{}, slow: map[uint64]report.Finding{}, asked: map[runtime.Program]bool{}}
	x.kernels()
	x.plans()
	x.spans()
	x.findings()
	r.Launch = x.launch()
	for _, p := range state.Points {
		r.Memory = append(r.Memory, report.Point{Time: micros(r.Opened, p.Time), Live: p.Live, Pool: p.Pool})
	}
	r.Peak = report.Peak{Time: micros(r.Opened, state.Peak.Time), Bytes: state.Peak.Bytes}
	for _, o := range state.Peak.Owners {
		r.Peak.Owners = append(r.Peak.Owners, report.Owner{What: o.What, Line: o.Line, Count: int(o.Count), Bytes: o.Bytes})
	}
	return r
}

func micros(from, t time.Time) float64 {
	if from.IsZero() || t.IsZero() {
		return 0
	}
	return float64(t.Sub(from)) / 1e3
}

// counters lists the numbers of Stats in the order of its fields.
func counters(s device.Stats) (list []report.Counter) {
	add := func(group string, v reflect.Value) {
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.Int64 {
				list = append(list, report.Counter{Group: group, Name: v.Type().Field(i).Name, Value: f.Int()})
			}
		}
	}
	add("engine", reflect.ValueOf(s))
	add("driver", reflect.ValueOf(s.Runtime))
	add("cache on disk", reflect.ValueOf(s.Cache))
	return list
}

// reporting is a report while it is made.
type reporting struct {
	d     *Device
	r     *report.Device
	state *profile.State
	at    []int          // the report's index of each kernel of the profile, -1 for none
	byKey map[uint64]int // the report's index of each kernel, by key

	slow  map[uint64]report.Finding // interpreted kernels, by key
	asked map[runtime.Program]bool  // programs already counted in slow; plans share programs
}

// kernels lists the kernels that took longest.
func (x *reporting) kernels() {
	order := make([]int, len(x.state.Kernels))
	for i := range order {
		order[i], x.at[i] = i, -1
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(x.state.Kernels[b].Nanos, x.state.Kernels[a].Nanos)
	})
	x.r.RunsLeft = x.state.Left.Runs
	if len(order) > reportKernels {
		x.r.KernelsLeft = int64(len(order) - reportKernels)
		for _, i := range order[reportKernels:] {
			x.r.RunsLeft += x.state.Kernels[i].Runs
		}
		order = order[:reportKernels]
	}
	for _, i := range order {
		k := &x.state.Kernels[i]
		runs := float64(max(k.Runs, 1))
		x.at[i], x.byKey[k.Key] = len(x.r.Kernels), len(x.r.Kernels)
		x.r.Kernels = append(x.r.Kernels, report.Kernel{Key: fmt.Sprintf("%016x", k.Key), Name: k.Name, Ops: k.Text, Choice: k.Choice, Runs: k.Runs, Timed: k.Timed,
			Micros: k.Nanos / 1e3, Bytes: k.Bytes / runs, Flops: k.Flops / runs})
	}
}

// plans lists the plans in use, those that ran most often first, with their kernels.
func (x *reporting) plans() {
	var all []*planstore.Known
	x.d.plans.Trie.All(func(_ []queue.Key, _ segment.End, known []*planstore.Known) { all = append(all, known...) })
	var views []planstore.View
	for _, e := range all { // making a text takes long, so it is done without the trie's lock
		if v := e.View(); v.Ops > 0 {
			views = append(views, v)
		}
	}
	slices.SortStableFunc(views, func(a, b planstore.View) int { return cmp.Compare(b.Runs, a.Runs) })
	if len(views) > reportPlans {
		x.r.PlansLeft = int64(len(views) - reportPlans)
		views = views[:reportPlans]
	}
	for _, v := range views {
		p := report.Plan{Segment: v.Segment, Text: v.Text, Mode: v.Made, Ops: v.Ops, Runs: v.Runs, Refused: v.Refused, Tuning: v.Tuning, Lines: v.Lines}
		for _, prog := range v.Steps {
			key := prog.Kernel().Key()
			i, ok := x.byKey[key]
			if !ok && x.d.Profile == nil && len(x.r.Kernels) < reportKernels {
				i, ok = x.untimed(prog.Kernel().(*codegen.Kernel)), true
			}
			x.interpreted(prog, v.Lines)
			if !ok {
				p.Kernels = append(p.Kernels, -1)
				continue
			}
			p.Kernels = append(p.Kernels, i)
			k := &x.r.Kernels[i]
			if k.Sources != nil {
				continue
			}
			for _, s := range planstore.Sources(x.d.Driver, prog) {
				k.Sources = append(k.Sources, report.Source{Tier: s.Tier, Class: s.Class, Text: s.Source})
				k.Tier = s.Tier
			}
		}
		x.r.Plans = append(x.r.Plans, p)
	}
}

// untimed adds a kernel whose time is unknown.
func (x *reporting) untimed(k *codegen.Kernel) int {
	i := len(x.r.Kernels)
	x.byKey[k.Key()] = i
	x.r.Kernels = append(x.r.Kernels, report.Kernel{Key: fmt.Sprintf("%016x", k.Key()), Name: k.Name(), Ops: k.String()})
	return i
}

// rowNames are the names of the rows that are not streams, in the order of the report.
var rowNames = []struct {
	row  profile.Row
	name string
}{
	{profile.RowExplore, "exploration"}, {profile.RowCompile, "compiler"}, {profile.RowTune, "tuning"},
	{profile.RowCache, "cache on disk"}, {profile.RowFault, "faults"}, {profile.RowHost, "host ops"},
}

// kinds maps the profile's kinds of spans to the report's.
var kinds = map[profile.Kind]report.Kind{
	profile.Segment: report.Segment, profile.Run: report.Run, profile.LaunchOf: report.Launch, profile.Explore: report.Explore,
	profile.Compile: report.Compile, profile.Tune: report.Tune, profile.Cache: report.Cache, profile.Fault: report.Fault,
	profile.Host: report.Host, profile.Wait: report.Wait,
}

// spans makes the timeline.
func (x *reporting) spans() {
	x.r.SpansLeft = x.state.Dropped
	seen := map[profile.Row]bool{}
	var streams []profile.Row
	for i := range x.state.Spans {
		row := x.state.Spans[i].Row
		if !seen[row] && row < profile.RowExplore {
			streams = append(streams, row)
		}
		seen[row] = true
	}
	slices.Sort(streams)
	rows := map[profile.Row]int{}
	open, closed := x.d.openNumbers(), 0
	for _, row := range streams {
		if row != 0 && !open[uint64(row)] {
			closed++
			continue
		}
		rows[row] = len(x.r.Rows)
		name := fmt.Sprintf("stream %d", row)
		if row == 0 {
			name = "copies, and ops one by one"
		}
		x.r.Rows = append(x.r.Rows, name)
	}
	if closed > 0 { // one row for all closed streams: a server closes a stream for each request
		for _, row := range streams {
			if _, ok := rows[row]; !ok {
				rows[row] = len(x.r.Rows)
			}
		}
		x.r.Rows = append(x.r.Rows, fmt.Sprintf("closed streams (%d)", closed))
	}
	for _, n := range rowNames {
		if seen[n.row] {
			rows[n.row] = len(x.r.Rows)
			x.r.Rows = append(x.r.Rows, n.name)
		}
	}
	for i := range x.state.Spans {
		s := &x.state.Spans[i]
		out := report.Span{Row: rows[s.Row], Kind: kinds[s.Kind], Start: micros(x.r.Opened, s.Start), Dur: float64(s.Took) / 1e3, Ref: s.Of, Note: s.Note}
		switch s.Kind {
		case profile.LaunchOf:
			if out.Ref >= 0 {
				out.Ref = x.at[out.Ref]
			}
		case profile.Compile, profile.Tune:
			out.Ref = -1
			if at, ok := x.byKey[s.Key]; ok {
				out.Ref = at
			}
		}
		x.r.Spans = append(x.r.Spans, out)
	}
}

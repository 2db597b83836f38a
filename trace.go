package millrace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/stream"
)

// Trace has a hook for each kind of event of the engine. Set it in [Options]; nil hooks are
// skipped. Hooks are called synchronously, by several goroutines at once if several streams are
// in use, and must not call the library. The panic of a hook leaves the library's call that ran
// the hook, or the next call:
//
//	Flush    func(FlushEvent)    a segment of a stream was planned, bound and submitted to run
//	Run      func(RunEvent)      launches ran, or were submitted to a device that works by itself
//	HostOp   func(HostOpEvent)   a host op ran, such as a collective of package dist
//	Explore  func(ExploreEvent)  a plan was made for a new segment
//	Compile  func(CompileEvent)  a compiler finished a kernel, or failed
//	Tune     func(TuneEvent)     a way to run a kernel was checked, timed, refused or chosen
//	Cache    func(CacheEvent)    the cache on disk, or a bundle, was searched, written to, or failed
//	Error    func(error)         a fault happened, even one that the engine survived; once for each
type Trace = device.Trace

// FlushEvent describes a segment that was submitted to run: Device, the device's number in the
// process; Stream, the stream's number on the device; Segment, its own number there; Reason,
// "read", "sync", "cap" or "hand-over"; Ops and Kernels; Hit, whether its plan was known; Plan,
// the kind of plan, "best", "greedy" or "unfused"; Start and Elapsed, which do not include
// running it.
type FlushEvent = device.FlushEvent

// RunEvent describes launches that ran: Device, Stream and Segment as in [FlushEvent], of the
// first segment if there are several, and 0 if they belong to none; Kernels, their number;
// Launches, each launch, in the few runs that are timed by launch; Start and Elapsed.
type RunEvent = device.RunEvent

// LaunchEvent describes one launch: Kernel, its key in hex; Name, from the ops that it computes;
// Chain, how many launches ran together, 1 for a single one; Start and Elapsed.
type LaunchEvent = device.LaunchEvent

// HostOpEvent describes a run of a host op, such as a collective of package dist: Device and Stream
// of its operand; Op, its name; Bytes of the operand; Start, when the operand was ready and earlier
// ones had ended; Elapsed, until its result was in memory; Err.
type HostOpEvent = device.HostOpEvent

// ExploreEvent describes a plan that was made: Ops, Kernels, Plan as in [FlushEvent], Background,
// whether no program waited for it, Elapsed.
type ExploreEvent = device.ExploreEvent

// CompileEvent describes one compile: Kernel, its key in hex; Elapsed; Err.
type CompileEvent = device.CompileEvent

// TuneEvent describes a step of tuning: Kernel, its key in hex; Candidate, the way to run it;
// Step, "checked", "timed", "refused" or "chosen"; Known, whether earlier timings chose it; Runs,
// how many were timed; Elapsed, of one run; Err, why it was refused.
type TuneEvent = device.TuneEvent

// CacheEvent describes an access to the cache on disk or to a bundle: Kind of the entry, "plan",
// "tuning", "object" or "compiler", or "" for the cache itself; Outcome, "hit", "miss",
// "damaged", "refused", "written", "evicted" or "failed", and for bundles "bundled", "damaged",
// "refused" or "foreign"; Bytes; Elapsed; Err.
type CacheEvent = device.CacheEvent

// TraceWriter writes the events of its hooks as a Chrome trace: a JSON array that
// chrome://tracing and ui.perfetto.dev show as a timeline. Each stream of a device has a row for
// recording and one for running, with an arrow from each segment to its launches. Explorations,
// compiles, tuning and the cache on disk have one row each, and the host ops of a device have one.
type TraceWriter struct {
	mu    sync.Mutex
	w     io.Writer
	start time.Time
	named map[row]bool // rows that have been named
	n     int
	err   error

	failed func(error) // gets the first error of writing; nil if Close returns it
}

// NewTraceWriter starts a trace on w. Set its [TraceWriter.Trace] in the Options of any number of
// devices, and call Close after the last event.
func NewTraceWriter(w io.Writer) *TraceWriter {
	return &TraceWriter{w: w, start: time.Now()}
}

// row is a row of the timeline. Rows of no device have device 0.
type row struct{ device, number uint64 }

// Rows of the timeline that are not a stream's recording. The row for running a stream is rowRuns
// plus the stream's number.
const (
	rowRuns    uint64 = 1 << 33
	rowExplore uint64 = 1<<32 + iota
	rowCompile
	rowCache
	rowError
	rowTune
	rowHost
)

// chromeEvent is one entry of the trace event format; times in microseconds.
type chromeEvent struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"` // X complete, i instant, M metadata
	Time  float64        `json:"ts"`
	Dur   float64        `json:"dur,omitempty"`
	PID   uint64         `json:"pid"` // of the device
	Row   uint64         `json:"tid"`
	Scope string         `json:"s,omitempty"`
	Cat   string         `json:"cat,omitempty"` // s and f, the ends of an arrow
	ID    string         `json:"id,omitempty"`
	Bind  string         `json:"bp,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// Trace returns the hooks to set in Options.
func (tw *TraceWriter) Trace() *Trace {
	if tw == nil {
		tw = new(TraceWriter) // has no file to write to
	}
	return &Trace{
		Flush: func(e FlushEvent) {
			at := row{e.Device, e.Stream}
			tw.span(at, fmt.Sprintf("stream %d", e.Stream), "segment", e.Start, e.Elapsed, map[string]any{
				"reason": e.Reason, "ops": e.Ops, "kernels": e.Kernels, "hit": e.Hit, "plan": e.Plan, "segment": e.Segment,
			})
			if e.Kernels > 0 {
				tw.arrow(at, "s", e.Segment, e.Start)
			}
		},
		Run: func(e RunEvent) {
			at := row{e.Device, rowRuns + e.Stream}
			name := fmt.Sprintf("stream %d runs", e.Stream)
			if e.Stream == 0 {
				name = "copies run"
			}
			tw.span(at, name, "run", e.Start, e.Elapsed, map[string]any{"kernels": e.Kernels, "segment": e.Segment})
			if e.Segment > 0 {
				tw.arrow(at, "f", e.Segment, e.Start)
			}
			for _, l := range e.Launches {
				args := map[string]any{"kernel": l.Kernel}
				if l.Chain > 1 {
					args["chain"] = l.Chain
				}
				tw.span(at, name, l.Name, l.Start, l.Elapsed, args)
			}
		},
		HostOp: func(e HostOpEvent) {
			args := map[string]any{"bytes": e.Bytes, "stream": e.Stream}
			if e.Err != nil {
				args["error"] = e.Err.Error()
			}
			tw.span(row{e.Device, rowHost}, "host ops", e.Op, e.Start, e.Elapsed, args)
		},
		Explore: func(e ExploreEvent) {
			tw.span(row{0, rowExplore}, "exploration", "explore", time.Now().Add(-e.Elapsed), e.Elapsed, map[string]any{
				"ops": e.Ops, "kernels": e.Kernels, "plan": e.Plan, "background": e.Background,
			})
		},
		Compile: func(e CompileEvent) {
			args := map[string]any{"kernel": e.Kernel}
			if e.Err != nil {
				args["error"] = e.Err.Error()
			}
			tw.span(row{0, rowCompile}, "compiler", "compile", time.Now().Add(-e.Elapsed), e.Elapsed, args)
		},
		Tune: func(e TuneEvent) {
			args := map[string]any{"kernel": e.Kernel, "candidate": e.Candidate, "runs": e.Runs, "known": e.Known}
			if e.Err != nil {
				args["error"] = e.Err.Error()
			}
			took := e.Elapsed * time.Duration(e.Runs)
			tw.span(row{0, rowTune}, "tuning", e.Step, time.Now().Add(-took), took, args)
		},
		Cache: func(e CacheEvent) {
			args := map[string]any{"kind": e.Kind, "bytes": e.Bytes}
			if e.Err != nil {
				args["error"] = e.Err.Error()
			}
			tw.span(row{0, rowCache}, "cache", e.Outcome, time.Now().Add(-e.Elapsed), e.Elapsed, args)
		},
		Error: func(err error) {
			tw.mu.Lock()
			defer tw.mu.Unlock()
			tw.name(row{0, rowError}, "errors")
			tw.put(chromeEvent{Name: "error", Phase: "i", Scope: "g", Time: tw.micros(time.Now()), Row: rowError,
				Args: map[string]any{"error": err.Error()}})
		},
	}
}

// Close ends the array and returns the first error of writing. It does not
// close the underlying writer.
func (tw *TraceWriter) Close() error {
	if tw == nil {
		return errNilWriter
	}
	tw.mu.Lock()
	defer tw.mu.Unlock()
	if tw.err == nil && tw.w == nil {
		tw.err = errNilWriter
	}
	if tw.err != nil {
		return tw.err
	}
	end := "\n]\n"
	if tw.n == 0 {
		end = "[]\n"
	}
	_, err := io.WriteString(tw.w, end)
	tw.err = errors.New("trace writer is closed") // later events are dropped
	return err
}

func (tw *TraceWriter) span(at row, rowName, name string, start time.Time, d time.Duration, args map[string]any) {
	tw.mu.Lock()
	defer tw.mu.Unlock()
	tw.name(at, rowName)
	tw.put(chromeEvent{Name: name, Phase: "X", Time: tw.micros(start), Dur: float64(d.Nanoseconds()) / 1e3, PID: at.device, Row: at.number, Args: args})
}

// arrow writes one end of the arrow from a segment to its launches.
func (tw *TraceWriter) arrow(at row, phase string, segment uint64, start time.Time) {
	tw.mu.Lock()
	defer tw.mu.Unlock()
	e := chromeEvent{Name: "launches", Phase: phase, Cat: "launches", ID: fmt.Sprintf("%d.%d", at.device, segment), Time: tw.micros(start), PID: at.device, Row: at.number}
	if phase == "f" {
		e.Bind = "e"
	}
	tw.put(e)
}

func (tw *TraceWriter) micros(t time.Time) float64 {
	return float64(t.Sub(tw.start).Nanoseconds()) / 1e3
}

func (tw *TraceWriter) name(at row, name string) {
	if !tw.named[at] {
		if tw.named == nil {
			tw.named = map[row]bool{}
		}
		tw.named[at] = true
		tw.put(chromeEvent{Name: "thread_name", Phase: "M", PID: at.device, Row: at.number, Args: map[string]any{"name": name}})
	}
}

// put writes one event. At any moment the array is valid except for its end, and viewers accept a
// missing end. A program that is killed therefore leaves a usable file.
func (tw *TraceWriter) put(e chromeEvent) {
	if tw.err == nil && tw.w == nil {
		tw.err = errNilWriter
	}
	if tw.err != nil {
		return
	}
	text, err := json.Marshal(e)
	if err == nil {
		lead := ",\n"
		if tw.n == 0 {
			lead = "[\n"
		}
		_, err = tw.w.Write(append([]byte(lead), text...))
	}
	tw.n++
	tw.err = err
	if err != nil && tw.failed != nil {
		go tw.failed(err) // the caller may hold a lock that the hook of tw.failed needs
	}
}

// sharedTraces has the files that MILLRACE_DEBUG=trace=FILE named. Each has one writer for all
// devices of the process, which stays open until the process ends.
var sharedTraces struct {
	sync.Mutex
	byPath map[string]*Trace
}

func sharedTrace(path string) (*Trace, error) {
	s := &sharedTraces
	s.Lock()
	defer s.Unlock()
	if t := s.byPath[path]; t != nil {
		return t, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if s.byPath == nil {
		s.byPath = map[string]*Trace{}
	}
	tw := NewTraceWriter(f)
	tw.mu.Lock()
	tw.name(row{0, rowError}, "errors") // an unwritable file is an error now, instead of a file without events later
	err = tw.err
	tw.failed = traceFailed
	tw.mu.Unlock()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	t := tw.Trace()
	s.byPath[path] = t
	return t, nil
}

// traceFailed reports to the hooks of all devices that no more events are written.
func traceFailed(err error) {
	for _, d := range stream.Devices() {
		d.OnError(fmt.Errorf("trace: %w", err))
	}
}

// bothTraces returns hooks that call a's, then b's. a may be nil.
func bothTraces(a, b *Trace) *Trace {
	if a == nil {
		return b
	}
	return &Trace{
		Flush:   both(a.Flush, b.Flush),
		Run:     both(a.Run, b.Run),
		HostOp:  both(a.HostOp, b.HostOp),
		Explore: both(a.Explore, b.Explore),
		Compile: both(a.Compile, b.Compile),
		Tune:    both(a.Tune, b.Tune),
		Cache:   both(a.Cache, b.Cache),
		Error:   both(a.Error, b.Error),
	}
}

func both[E any](f, g func(E)) func(E) {
	if f == nil {
		return g
	}
	return func(e E) {
		f(e)
		g(e)
	}
}

// LogTrace returns hooks that report the engine's events to a logger. Set them in [Options]. If l
// is nil, each event goes to the slog.Default of its moment. MILLRACE_DEBUG=log sets these hooks
// on every device. Each record is one of:
//
//	warning  "fault": a fault, even one that the engine survived: a refused cache, a failed
//	         compiler, work that ran another way
//	info     "plan from elsewhere": a bundle has the plan, but the device cannot use it
//	debug    "explored", "compiled", "tuned" (each step), "cache" (each entry)
//
// Segments that run are not logged, because they are too many. [TraceWriter] draws them.
func LogTrace(l *slog.Logger) *Trace {
	tell := func(level slog.Level, message string, attrs ...slog.Attr) {
		to := l
		if to == nil {
			to = slog.Default()
		}
		to.LogAttrs(context.Background(), level, "millrace: "+message, attrs...)
	}
	withError := func(err error, attrs ...slog.Attr) []slog.Attr {
		if err != nil {
			attrs = append(attrs, slog.Any("error", err))
		}
		return attrs
	}
	return &Trace{
		Explore: func(e ExploreEvent) {
			tell(slog.LevelDebug, "explored", slog.Int("ops", e.Ops), slog.Int("kernels", e.Kernels), slog.String("plan", e.Plan),
				slog.Bool("background", e.Background), slog.Duration("elapsed", e.Elapsed))
		},
		Compile: func(e CompileEvent) { // a failed compile is also logged as a fault
			tell(slog.LevelDebug, "compiled", withError(e.Err, slog.String("kernel", e.Kernel), slog.Duration("elapsed", e.Elapsed))...)
		},
		Tune: func(e TuneEvent) {
			tell(slog.LevelDebug, "tuned", withError(e.Err, slog.String("kernel", e.Kernel), slog.String("candidate", e.Candidate),
				slog.String("step", e.Step), slog.Int("runs", e.Runs), slog.Duration("run", e.Elapsed))...)
		},
		Cache: func(e CacheEvent) {
			level, message := slog.LevelDebug, "cache"
			if e.Outcome == "foreign" {
				level, message = slog.LevelInfo, "plan from elsewhere"
			}
			tell(level, message, withError(e.Err, slog.String("kind", e.Kind), slog.String("outcome", e.Outcome),
				slog.Int64("bytes", e.Bytes), slog.Duration("elapsed", e.Elapsed))...)
		},
		Error: func(err error) { tell(slog.LevelWarn, "fault", slog.Any("error", err)) },
	}
}

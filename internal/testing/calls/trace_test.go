package calls_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
)

type chromeEvent struct {
	Name string         `json:"name"`
	Ph   string         `json:"ph"`
	Ts   *float64       `json:"ts"`
	Dur  float64        `json:"dur"`
	Tid  uint64         `json:"tid"`
	Args map[string]any `json:"args"`
}

// TestTraceWriter checks that a trace is valid JSON after Close, names its rows once, and has an
// event for every hook that was called.
func TestTraceWriter(t *testing.T) {
	var out bytes.Buffer
	tw := millrace.NewTraceWriter(&out)
	hooks := tw.Trace()
	hooks.Flush(millrace.FlushEvent{Stream: 3, Reason: "read", Ops: 5, Kernels: 1, Hit: true, Start: time.Now(), Elapsed: 2 * time.Millisecond})
	hooks.Flush(millrace.FlushEvent{Stream: 3, Reason: "sync", Start: time.Now()})
	hooks.Run(millrace.RunEvent{Device: 2, Stream: 3, Segment: 9, Kernels: 2, Start: time.Now(), Elapsed: time.Millisecond,
		Launches: []millrace.LaunchEvent{{Kernel: "abc", Name: "mul+add", Chain: 1, Start: time.Now(), Elapsed: time.Millisecond}}})
	hooks.HostOp(millrace.HostOpEvent{Device: 2, Stream: 3, Op: "allreduce", Bytes: 64, Start: time.Now(), Elapsed: time.Millisecond, Err: errors.New("no answer")})
	hooks.Explore(millrace.ExploreEvent{Ops: 5, Kernels: 1, Elapsed: time.Millisecond})
	hooks.Compile(millrace.CompileEvent{Kernel: "abc", Elapsed: time.Millisecond, Err: errors.New(`no "cc"`)})
	hooks.Tune(millrace.TuneEvent{Kernel: "abc", Candidate: "threads=1", Step: "timed", Runs: 3, Elapsed: time.Millisecond})
	hooks.Tune(millrace.TuneEvent{Kernel: "abc", Candidate: "nt=on", Step: "refused", Err: errors.New("other results")})
	hooks.Error(errors.New("lost"))
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	hooks.Error(errors.New("too late"))
	if err := tw.Close(); err == nil {
		t.Error("closed twice")
	}
	var events []chromeEvent
	if err := json.Unmarshal(out.Bytes(), &events); err != nil {
		t.Fatalf("%v:\n%s", err, out.Bytes())
	}
	count := map[string]int{}
	for _, e := range events {
		count[e.Name]++
		if e.Ts == nil || e.Ph == "" {
			t.Errorf("event without time or phase: %+v", e)
		}
		if e.Name == "segment" && e.Args["reason"] == "read" && (e.Tid != 3 || e.Dur != 2000 || e.Args["ops"] != 5.0 || e.Args["hit"] != true) {
			t.Errorf("segment: %+v", e)
		}
		if e.Name == "compile" && e.Args["error"] != `no "cc"` {
			t.Errorf("compile: %+v", e)
		}
		if e.Name == "allreduce" && (e.Dur != 1000 || e.Args["bytes"] != 64.0 || e.Args["error"] != "no answer") {
			t.Errorf("host op: %+v", e)
		}
		if e.Name == "timed" && (e.Dur != 3000 || e.Args["candidate"] != "threads=1") || e.Name == "refused" && e.Args["error"] != "other results" {
			t.Errorf("tuning: %+v", e)
		}
	}
	want := map[string]int{"segment": 2, "explore": 1, "compile": 1, "error": 1, "timed": 1, "refused": 1, "thread_name": 7, "run": 1, "allreduce": 1, "mul+add": 1, "launches": 2}
	for name, n := range want {
		if count[name] != n {
			t.Errorf("%d events %q, want %d:\n%s", count[name], name, n, out.Bytes())
		}
	}
}

func TestTraceWriterFaults(t *testing.T) {
	var out bytes.Buffer
	if err := millrace.NewTraceWriter(&out).Close(); err != nil || out.String() != "[]\n" {
		t.Errorf("empty trace: %v, %q", err, out.String())
	}
	tw := millrace.NewTraceWriter(full{})
	tw.Trace().Error(errors.New("x"))
	if err := tw.Close(); err == nil {
		t.Error("the writer's error was lost")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// TestHooks checks that the hooks of a device report every flush, the plans made, and each error
// once.
func TestHooks(t *testing.T) {
	var flushes []millrace.FlushEvent
	var explored, faults int
	dev, err := millrace.OpenOptions(millrace.Options{Device: "cpu", Compile: millrace.CompileOff, Trace: &millrace.Trace{
		Flush:   func(e millrace.FlushEvent) { flushes = append(flushes, e) },
		Explore: func(millrace.ExploreEvent) { explored++ },
		Error:   func(error) { faults++ },
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	x := millrace.FromSliceOn(dev, []float32{1, 2, 3})
	for range 3 {
		if _, err := millrace.Values[float32](x.Exp().AddScalar(1)); err != nil {
			t.Fatal(err)
		}
	}
	x.Reshape(5)
	if len(flushes) != 3 || explored != 1 || faults != 1 {
		t.Fatalf("%d flushes, %d explorations, %d faults, want 3, 1, 1: %+v", len(flushes), explored, faults, flushes)
	}
	for i, e := range flushes {
		if e.Reason != "read" || e.Ops != 2 || e.Kernels != 1 || e.Hit != (i > 0) || e.Elapsed < 0 || e.Start.IsZero() {
			t.Errorf("flush %d: %+v", i, e)
		}
	}
}

package calls_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
)

// records returns the records of a JSON logger, by message.
func records(t *testing.T, out []byte) map[string]map[string]any {
	t.Helper()
	by := map[string]map[string]any{}
	for line := range bytes.Lines(out) {
		var r map[string]any
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		by[r["msg"].(string)] = r
	}
	return by
}

func TestLogTrace(t *testing.T) {
	var out bytes.Buffer
	hooks := millrace.LogTrace(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	why := errors.New("a reason")
	hooks.Explore(millrace.ExploreEvent{Ops: 5, Kernels: 2, Plan: "best", Elapsed: time.Millisecond})
	hooks.Compile(millrace.CompileEvent{Kernel: "abc", Err: why})
	hooks.Tune(millrace.TuneEvent{Kernel: "abc", Candidate: "threads=1", Step: "chosen", Runs: 3})
	hooks.Cache(millrace.CacheEvent{Kind: "plan", Outcome: "hit", Bytes: 7})
	hooks.Cache(millrace.CacheEvent{Kind: "plan", Outcome: "foreign", Err: why})
	hooks.Error(why)
	got := records(t, out.Bytes())
	for message, want := range map[string]map[string]any{
		"millrace: explored":            {"level": "DEBUG", "ops": 5.0, "kernels": 2.0, "plan": "best", "background": false, "elapsed": 1e6},
		"millrace: compiled":            {"level": "DEBUG", "kernel": "abc", "error": "a reason"},
		"millrace: tuned":               {"level": "DEBUG", "candidate": "threads=1", "step": "chosen", "runs": 3.0, "error": nil},
		"millrace: cache":               {"level": "DEBUG", "kind": "plan", "outcome": "hit", "bytes": 7.0},
		"millrace: plan from elsewhere": {"level": "INFO", "error": "a reason"},
		"millrace: fault":               {"level": "WARN", "error": "a reason"},
	} {
		for key, value := range want {
			if got[message][key] != value {
				t.Errorf("%s: %s is %v, want %v", message, key, got[message][key], value)
			}
		}
	}
	if hooks.Flush != nil {
		t.Error("segments are told")
	}
}

// TestLogRefusedCache checks that an unusable cache is logged as a warning, and that there are no
// warnings otherwise.
func TestLogRefusedCache(t *testing.T) {
	dir := t.TempDir()
	open := func(cache string) map[string]map[string]any {
		var out bytes.Buffer
		d, err := millrace.OpenOptions(millrace.Options{Device: "cpu", Cache: cache, Compile: millrace.CompileOff,
			Trace: millrace.LogTrace(slog.New(slog.NewJSONHandler(&out, nil)))})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := millrace.Values[float32](millrace.OnesOn(d, millrace.Float32, 3).AddScalar(1)); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		return records(t, out.Bytes())
	}
	if got := open(filepath.Join(dir, "good")); len(got) != 0 {
		t.Errorf("without a fault: %v", got)
	}
	bad := filepath.Join(dir, "file")
	if err := os.WriteFile(bad, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := open(bad)["millrace: fault"]
	if text, _ := got["error"].(string); got["level"] != "WARN" || !strings.Contains(text, bad+" is a file") || !strings.Contains(text, "MILLRACE_CACHE") {
		t.Errorf("a cache that is a file: %v", got)
	}
}

// TestDebugLog: MILLRACE_DEBUG=log logs by slog's default.
func TestDebugLog(t *testing.T) {
	const mark = "MILLRACE_TEST_LOG"
	if dir := os.Getenv(mark); dir != "" {
		slog.SetDefault(slog.New(slog.NewTextHandler(os.Stdout, nil)))
		d, err := millrace.Open("cpu:compile=off,cache=" + dir)
		if err != nil {
			t.Fatal(err)
		}
		d.Close()
		return
	}
	bad := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(bad, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestDebugLog$")
	cmd.Env = append(os.Environ(), mark+"="+bad, "MILLRACE_DEBUG=log")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `level=WARN msg="millrace: fault"`) {
		t.Errorf("%v\n%s", err, out)
	}
}

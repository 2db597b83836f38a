package calls_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
)

func TestOpenTakesOptions(t *testing.T) {
	dev := openCPU(t, "cpu:threads=1,tier=0,fusion=off,memory=64MiB")
	if dev.Name() != "cpu" || !dev.Exact() || !dev.Supports(millrace.Float64) || dev.Supports(millrace.Invalid) || dev.Description() == "" {
		t.Errorf("%s %q: exact %v", dev.Name(), dev.Description(), dev.Exact())
	}
	before := dev.Stats()
	x := millrace.OnesOn(dev, millrace.Float32, 4)
	if err := x.AddScalar(1).MulScalar(2).Eval(); err != nil {
		t.Fatal(err)
	}
	after := dev.Stats()
	if n := after.Runtime.Launches - before.Runtime.Launches; n < 3 {
		t.Errorf("three ops without fusion took %d launches", n)
	}
	if after.Ops-before.Ops != 3 {
		t.Errorf("%d ops counted, want 3", after.Ops-before.Ops)
	}
}

func TestOpenErrors(t *testing.T) {
	for _, c := range []struct {
		spec  string
		cause error
		says  []string
	}{
		{"cpu:thread=2", nil, []string{`"thread"`, "threads"}},
		{"cpu:threads=-1,tier=7", nil, []string{"Threads", "tier"}},
		{"cpu:threads=100000", nil, []string{"Threads", "1024", "100000"}},
		{"cpu:isolate=on", nil, []string{"isolate=on", `"cpu"`}},
		{"cpu:subgroups=off", nil, []string{"subgroups=off", `"cpu"`}},
		{"cpu:narrow=off", nil, []string{"narrow=off", `"cpu"`}},
		{"abacus", millrace.ErrNoDriver, []string{"abacus", "cpu"}},
		{"webgpu", millrace.ErrNoDriver, []string{"import", "github.com/millrace-go/millrace/runtime/webgpu"}},
	} {
		d, err := millrace.Open(c.spec)
		if err == nil {
			t.Errorf("%s: opened", c.spec)
			d.Close()
			continue
		}
		if c.cause != nil && !errors.Is(err, c.cause) {
			t.Errorf("%s: %v, want %v", c.spec, err, c.cause)
		}
		for _, s := range c.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%s: does not say %q: %v", c.spec, s, err)
			}
		}
	}
	if _, err := millrace.OpenOptions(millrace.Options{Threads: -1, QueueCap: -1}); err == nil || !strings.Contains(err.Error(), "Threads") || !strings.Contains(err.Error(), "QueueCap") {
		t.Errorf("negative options: %v", err)
	}
}

// TestEnvironment: the environment is read when a device is opened. The test runs itself as a new
// process with a variable set, and checks its output.
func TestEnvironment(t *testing.T) {
	if os.Getenv("MILLRACE_TEST_CHILD") != "" {
		child()
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	trace := t.TempDir() + "/trace.json"
	for _, c := range []struct {
		env  []string
		says []string
	}{
		{nil, []string{"device cpu", "sum 6.0"}},
		{[]string{"MILLRACE_DEVICE=cpu:fusion=off"}, []string{"launches 3", "sum 6.0"}},
		{[]string{"MILLRACE_DEVICE=cpu:threads=x"}, []string{"<", "MILLRACE_DEVICE", "threads"}},
		{[]string{"MILLRACE_DEVICE=webgpu"}, []string{"<", "no driver", "runtime/webgpu"}},
		{[]string{"MILLRACE_COMPILE=off"}, []string{"sum 6.0", "compiles 0"}},
		{[]string{"MILLRACE_COMPILE=off", "MILLRACE_DEVICE=cpu:tier=1"}, []string{"sum 6.0", "compiles 0"}},
		{[]string{"MILLRACE_COMPILE=native", "MILLRACE_DEVICE=cpu:tier=1"}, []string{"sum 6.0", "compiles 0"}},
		{[]string{"MILLRACE_COMPILE=c"}, []string{"sum 6.0", "native 0"}},
		{[]string{"MILLRACE_COMPILE=never"}, []string{"<", "MILLRACE_COMPILE", "want on, off, native or c"}},
		{[]string{"MILLRACE_LEVEL=none"}, []string{"sum 6.0", "native 0"}},
		{[]string{"MILLRACE_LEVEL=sse"}, []string{"<", "MILLRACE_LEVEL", "avx2"}},
		{[]string{"MILLRACE_DEBUG=help"}, []string{"trace=FILE", "sum 6.0"}},
		{[]string{"MILLRACE_DEBUG=nonsense"}, []string{"<", "MILLRACE_DEBUG", "lines"}},
		{[]string{"MILLRACE_DEBUG=check,lines"}, []string{"sum 6.0"}},
		{[]string{"MILLRACE_DEBUG=perfmap"}, perfmap()},
		{[]string{"MILLRACE_DEBUG=trace=" + trace}, []string{"sum 6.0"}},
		{[]string{"MILLRACE_DEBUG=trace=" + fullFile()}, []string{"<", "MILLRACE_DEBUG", fullFile()}},
	} {
		cmd := exec.Command(exe, "-test.run=^TestEnvironment$")
		cmd.Env = append(os.Environ(), "MILLRACE_TEST_CHILD=1", "MILLRACE_DEVICE=", "MILLRACE_COMPILE=", "MILLRACE_LEVEL=", "MILLRACE_DEBUG=")
		cmd.Env = append(cmd.Env, c.env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v: %v\n%s", c.env, err, out)
		}
		perf := fmt.Sprintf("/tmp/perf-%d.map", cmd.ProcessState.Pid())
		if err := os.Remove(perf); runtime.GOOS == "linux" && (err == nil) != slices.Contains(c.env, "MILLRACE_DEBUG=perfmap") {
			t.Errorf("%v: a map for perf: %v", c.env, err)
		}
		for _, s := range c.says {
			if !strings.Contains(string(out), s) {
				t.Errorf("%v: does not print %q:\n%s", c.env, s, out)
			}
		}
	}
	if data, err := os.ReadFile(trace); err != nil || !strings.Contains(string(data), `"segment"`) {
		t.Errorf("trace file: %v\n%s", err, data)
	}
}

// fullFile returns a file that can be opened but takes no data, if the system has one.
func fullFile() string {
	if runtime.GOOS != "linux" {
		return "/nowhere/trace.json"
	}
	return "/dev/full"
}

// perfmap returns the output of a program with a map for perf.
func perfmap() []string {
	if runtime.GOOS != "linux" {
		return []string{"<", "perf map"}
	}
	return []string{"sum 6.0"}
}

func child() {
	x := millrace.FromSlice([]float32{0, 1, 2})
	os.Stdout.WriteString("sum " + x.AddScalar(1).MulScalar(1).Sum().String() + "\n")
	d, err := millrace.Default()
	if err != nil {
		return
	}
	s := d.Stats()
	os.Stdout.WriteString("device " + d.Name() + "\n")
	os.Stdout.WriteString("launches " + itoa(s.Runtime.Launches) + "\ncompiles " + itoa(s.Runtime.Compiles) + "\nnative " + itoa(s.Runtime.NativeKernels) + "\n")
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

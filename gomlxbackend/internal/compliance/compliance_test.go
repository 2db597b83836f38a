// Package compliance runs the test suite that github.com/gomlx/compute has for
// backends, and compares ops with that module's own backend. It is a package of
// its own because it imports GPU drivers.
package compliance

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/compute/support/backendtest"
	_ "github.com/millrace-go/millrace/gomlxbackend"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
)

// open is a backend until the test's end.
func open(t *testing.T, config string) compute.Backend {
	t.Helper()
	b, err := compute.NewWithConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Finalize)
	return b
}

// openIfThere is open on a device that the machine may lack: then the test is
// skipped, unless the device is required.
func openIfThere(t *testing.T, config string) compute.Backend {
	t.Helper()
	if b, err := compute.NewWithConfig(config); err == nil {
		b.Finalize()
	} else if !required(config) {
		t.Skip(err)
	}
	return open(t, config)
}

// suiteOn is how TestSuite tells the process that it starts what to run on.
const suiteOn = "MILLRACE_SUITE"

// TestRunAll is the suite itself; TestSuite runs it.
func TestRunAll(t *testing.T) {
	config := os.Getenv(suiteOn)
	if config == "" {
		t.Skip("run by TestSuite")
	}
	backendtest.RunAll(t, open(t, config), nil)
}

// without are tests of the suite that use a dtype whether a backend declares
// it or not: all of 64 bits, which WebGPU has none of.
var without = []string{
	"BinaryOps/Add", "BinaryOps/Mul/Large-2D", "Exec/CompileAndExecute", "SpecialOps/Reduce/Max", "SpecialOps/ReduceBitwise",
	"SpecialOps/Slice/Simple1D", "SpecialOps/Slice/EmptySlice", "SpecialOps/Slice/EmptySliceMultipleDimensions", "DotGeneral/float64",
}

// TestSuite counts what the suite passes, skips and fails. It skips what a
// backend does not declare, so that a floor under the passes and a limit to the
// skips hold what there is.
func TestSuite(t *testing.T) {
	for _, d := range []struct {
		config       string
		skip         []string
		passes, most int // at least so many passes, at most so many skips
	}{
		{"millrace:cpu", nil, suiteCPU[0], suiteCPU[1]},
		{"millrace:webgpu", without, 219, 109},
	} {
		t.Run(d.config, func(t *testing.T) {
			b, err := compute.NewWithConfig(d.config)
			if err != nil {
				if required(d.config) {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			b.Finalize()
			args := []string{"-test.run=^TestRunAll$", "-test.v"}
			if len(d.skip) > 0 {
				args = append(args, "-test.skip=^TestRunAll$/^"+strings.Join(anchored(d.skip), "$|^TestRunAll$/^")+"$")
			}
			cmd := exec.Command(os.Args[0], args...)
			cmd.Env = append(os.Environ(), suiteOn+"="+d.config)
			out, err := cmd.CombinedOutput()
			n := map[string]int{}
			for _, m := range result.FindAllSubmatch(out, -1) {
				n[string(m[1])]++
			}
			t.Logf("%d pass, %d skip, %d fail", n["PASS"], n["SKIP"], n["FAIL"])
			if err != nil || n["FAIL"] > 0 {
				t.Errorf("%v\n%s", err, bytes.TrimSpace(out))
			}
			if n["PASS"] < d.passes || n["SKIP"] > d.most {
				t.Errorf("want at least %d passes and at most %d skips", d.passes, d.most)
			}
		})
	}
}

// A GPU's memory is not the program's: that is told as GoMLX expects.
func TestNoSharedBuffersOnGPU(t *testing.T) {
	const config = "millrace:webgpu"
	b := openIfThere(t, config)
	if b.HasSharedBuffers() {
		t.Error("shared buffers")
	}
	s := shapes.Make(dtypes.Float32, 2)
	if _, _, err := b.NewSharedBuffer(0, s); !compute.IsNotImplemented(err) {
		t.Errorf("NewSharedBuffer: %v", err)
	}
	buf, err := b.BufferFromFlatData(0, []float32{1, 2}, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := buf.Data(); !compute.IsNotImplemented(err) {
		t.Errorf("Data: %v", err)
	}
}

// required reports that a missing device is a failure.
func required(config string) bool {
	device, _, _ := strings.Cut(strings.TrimPrefix(config, "millrace:"), ",")
	return strings.Contains(os.Getenv("MILLRACE_REQUIRE"), device)
}

var result = regexp.MustCompile(`(?m)^ *--- (PASS|SKIP|FAIL): `)

// anchored are names of tests as -test.skip matches them, level by level.
func anchored(names []string) []string {
	var list []string
	for _, n := range names {
		list = append(list, strings.ReplaceAll(n, "/", "$/^"))
	}
	return list
}

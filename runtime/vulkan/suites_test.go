//go:build (linux || darwin || windows) && (amd64 || arm64)

package vulkan

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace-go/millrace/codegen/spirv"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/internal/gputest"
	"github.com/millrace-go/millrace/runtime/vulkan/internal/gpu"
)

var target = gputest.Target{
	Name:    name,
	Dialect: spirv.Dialect,
	Open:    open,
}

// messages is the number of messages of the validation layers, which watch all tests if they are
// installed.
var messages atomic.Int64

// The layers are switched on before the driver is registered, except for benchmarks. A process that
// serves an isolated device ends with its first message, which fails the test.
var _ = func() bool {
	if slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-test.bench=") }) {
		return false
	}
	isolated := os.Getenv("MILLRACE_ISOLATED") != ""
	gpu.Validate(func(message string) {
		fmt.Fprintln(os.Stderr, message)
		if isolated {
			os.Exit(3)
		}
		messages.Add(1)
	})
	return true
}()

// clean fails a test that causes a message of the validation layers.
func clean(t *testing.T) {
	t.Cleanup(func() {
		if n := messages.Swap(0); n > 0 {
			t.Errorf("the validation layers have %d messages", n)
		}
		if _, err := gpu.Adapters(); err == nil && !gpu.Validated() && os.Getenv("CI") == "true" {
			t.Error("no validation layers (Debian: vulkan-validationlayers)")
		}
	})
}

func TestSuites(t *testing.T) {
	clean(t)
	gputest.Run(t, target)
}

// TestUnits says whether the suites tested matrix units.
func TestUnits(t *testing.T) {
	clean(t)
	gputest.HasUnits(t, target)
}

func init() { gputest.ServeFaults(target) }

func TestIsolated(t *testing.T) {
	clean(t)
	gputest.Isolated(t, target)
}

// TestApart runs suites on a device whose memory the host does not see, as that of most cards.
func TestApart(t *testing.T) {
	clean(t)
	t.Setenv("MILLRACE_VULKAN", "apart")
	gputest.Some(t, target, "Copy", "Scalars", "Transfers", "Narrow", "Concurrent", "IndexFaults", "Prepared", "Lost", "Closed", "EngineWarm", "EngineRecordedSteps", "EnginePrograms")
}

// TestWithoutNarrow runs suites as on an adapter whose shaders access words only.
func TestWithoutNarrow(t *testing.T) {
	clean(t)
	gputest.WithoutNarrow(t, target)
}

func BenchmarkSuites(b *testing.B) { gputest.Bench(b, target) }

// TestNoDriver opens a device in a process that finds no Vulkan driver.
func TestNoDriver(t *testing.T) {
	if os.Getenv("MILLRACE_TEST_NO_DRIVER") != "" {
		_, err := driver(t).Open(runtime.Config{})
		_, perr := driver(t).Probe()
		if !errors.Is(err, runtime.ErrNoDriver) || !errors.Is(perr, runtime.ErrNoDriver) || !strings.Contains(err.Error(), "mesa-vulkan-drivers") {
			t.Fatalf("open: %v; probe: %v", err, perr)
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestNoDriver$", "-test.v")
	cmd.Env = append(os.Environ(), "MILLRACE_TEST_NO_DRIVER=1", "VK_DRIVER_FILES=/nonexistent", "VK_ICD_FILENAMES=/nonexistent")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "error: XDG") {
		t.Errorf("opening printed:\n%s", out)
	}
}

// driver is the driver that the engine opens.
func driver(t *testing.T) runtime.Driver {
	t.Helper()
	d, err := runtime.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

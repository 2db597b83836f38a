//go:build cgo && ((linux && !android && amd64) || darwin || (windows && amd64))

package webgpu

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen/wgsl"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/internal/gputest"
)

var target = gputest.Target{
	Name:    name,
	Dialect: wgsl.Dialect,
	Open:    open,
}

func TestSuites(t *testing.T) { gputest.Run(t, target) }

func init() { gputest.ServeFaults(target) }

func TestIsolated(t *testing.T) { gputest.Isolated(t, target) }

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

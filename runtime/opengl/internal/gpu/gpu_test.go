//go:build cgo && linux && !android && !noopengl

package gpu

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/internal/gputest"
)

const head = `#version 430 core
layout(std430, binding = 0) buffer Buffer0 { uint b[]; };
layout(std140, binding = 0) uniform Words { uvec4 p[1]; };
layout(local_size_x = 64) in;
void main() {
	uint i = gl_GlobalInvocationID.x;
`

const double = head + `	if (i < p[0].x) {
		b[i] = b[i] * 2u + p[0].y;
	}
}
`

const slow = head + `	uint x = b[i];
	for (uint n = 0u; n < p[0].x; n = n + 1u) {
		x = x * 1664525u + 1013904223u;
		x = x ^ (x >> 7u);
	}
	b[i] = x;
}
`

// TestDevice: the device keeps the promises of a gpurun.Device.
func TestDevice(t *testing.T) {
	gputest.RunContract(t, gputest.Target{
		Name: "opengl",
		Open: func(adapter string) (gpurun.Device, error) {
			d, err := Best(adapter)
			if err != nil {
				return nil, err
			}
			return d, nil
		},
		Double: double, Slow: slow,
		Bad: map[string]string{
			"syntax":     "#version 430 core\nvoid main( {",
			"type":       head + "uint x = 1.0; }",
			"entry":      "#version 430 core\nlayout(local_size_x = 1) in;\nvoid other() {}",
			"group size": "#version 430 core\nlayout(local_size_x = 65536) in;\nvoid main() {}",
			"no groups":  "#version 430 core\nvoid main() {}",
		},
	})
}

// TestNoMemory: a process at its memory limit gets an error for a new buffer, and continues with
// its existing ones.
func TestNoMemory(t *testing.T) {
	const mark = "MILLRACE_TEST_NO_MEMORY"
	d, err := Best("llvmpipe")
	if err != nil {
		gputest.Missing(t, "opengl", err)
	}
	defer d.Close()
	if os.Getenv(mark) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNoMemory$", "-test.v")
		cmd.Env = append(os.Environ(), mark+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	b, err := d.NewBuffer(1<<20, gpurun.Storage)
	if err != nil {
		t.Fatal(err)
	}
	var pages uint64 // of address space, all of which counts
	statm, err := os.ReadFile("/proc/self/statm")
	if _, e := fmt.Sscan(string(statm), &pages); err != nil || e != nil {
		t.Skip("no /proc here")
	}
	most := pages*uint64(os.Getpagesize()) + 512<<20
	limit := syscall.Rlimit{Cur: most, Max: most + 256<<20}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &limit); err != nil {
		t.Skip(err)
	}
	for range 8 {
		if _, err = d.NewBuffer(128<<20, gpurun.Storage); err != nil {
			break
		}
	}
	if !errors.Is(err, gpurun.ErrMemory) {
		t.Fatalf("%v, want ErrMemory", err)
	}
	limit.Cur = limit.Max // what is left may be too little for the heap of Go, which ends the process then
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &limit); err != nil {
		t.Fatal(err)
	}
	if err := d.Write(b, 0, 1<<20, func(dst []byte, _ int64) { clear(dst) }); err != nil {
		t.Error(err)
	}
	if err := d.Wait(); err != nil {
		t.Error(err)
	}
}

// TestTakenAway: a context that leaves the device's thread, as a driver's callback might cause,
// makes the device lost. Otherwise all calls would do nothing.
func TestTakenAway(t *testing.T) {
	d, err := Best("")
	if err != nil {
		gputest.Missing(t, "opengl", err)
	}
	if err := d.do(func() error { d.ctx.Leave(); return nil }); err != nil {
		t.Log(err) // OpenGL's message without a context
	}
	if err := d.Wait(); !errors.Is(err, gpurun.ErrLost) || !strings.Contains(err.Error(), "no longer current") {
		t.Errorf("%v, want that the context is gone", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestPanics: a panic on the device's thread makes the device lost; waiting callers get an answer,
// and the thread can be ended.
func TestPanics(t *testing.T) {
	for name, call := range map[string]func(d *Device) error{
		"with an answer": func(d *Device) error { return d.do(func() error { panic("a test") }) },
		"without one": func(d *Device) error {
			if err := d.post(func() { panic("a test") }); err != nil {
				return err
			}
			return d.Wait()
		},
		"looking at the context": func(d *Device) error { d.ctx = panicking{d.ctx}; return d.Wait() },
	} {
		d, err := Best("")
		if err != nil {
			gputest.Missing(t, "opengl", err)
		}
		if err := call(d); !errors.Is(err, gpurun.ErrLost) || !strings.Contains(err.Error(), "a test") {
			t.Errorf("%s: %v", name, err)
		}
		if err := d.Wait(); !errors.Is(err, gpurun.ErrLost) {
			t.Errorf("%s, afterwards: %v", name, err)
		}
		if err := d.Close(); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
	}
	if _, err := Open(panicking{}, nil); err == nil || !strings.Contains(err.Error(), "a test") {
		t.Errorf("a context that cannot be made current: %v", err)
	}
}

// panicking is a context whose functions, which belong to the program, panic.
type panicking struct{ Context }

func (panicking) MakeCurrent() error { panic("a test") }
func (panicking) Current() bool      { panic("a test") }

//go:build cgo && linux && !android && !noopengl

package opengl

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/internal/gputest"
	"github.com/millrace-go/millrace/runtime/opengl/internal/egl"
	"github.com/millrace-go/millrace/runtime/opengl/internal/gpu"
)

const processMark = "MILLRACE_TEST_PROCESS"

// inProcess runs the test of this name in another process, with more environment variables, and
// reports whether this is that process.
func inProcess(t *testing.T, env ...string) bool {
	t.Helper()
	if os.Getenv(processMark) == t.Name() {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v")
	cmd.Env = append(append(os.Environ(), processMark+"="+t.Name()), env...)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+strings.Split(t.Name(), "/")[0]) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// refused opens a device that does not exist.
func refused(t *testing.T, want ...string) {
	t.Helper()
	_, err := driver(t).Open(runtime.Config{})
	_, perr := driver(t).Probe()
	for _, e := range []error{err, perr} {
		if !errors.Is(e, runtime.ErrNoDriver) {
			t.Fatalf("%v, want ErrNoDriver", e)
		}
		for _, w := range want {
			if !strings.Contains(e.Error(), w) {
				t.Errorf("%v: no %q", e, w)
			}
		}
	}
	// Everything else works.
	d, err := millrace.Open("cpu:compile=off")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	holds(t, d)
}

// holds computes on a device.
func holds(t *testing.T, d *millrace.Device) {
	t.Helper()
	v, err := millrace.Values[float32](millrace.FromSliceOn(d, []float32{1, 2, 3}).Square().AddScalar(1))
	if err != nil || v[0] != 2 || v[1] != 5 || v[2] != 10 {
		t.Errorf("%v, %v", v, err)
	}
}

// TestNoLibrary: a process without a usable libEGL starts, and reports that.
func TestNoLibrary(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "libEGL.so.1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if inProcess(t, "LD_LIBRARY_PATH="+dir) {
		refused(t, "libEGL.so.1", "libegl1")
		if _, err := Share(); err == nil || !strings.Contains(err.Error(), "libEGL.so.1") {
			t.Errorf("Share: %v", err)
		}
	}
}

// TestNoDriver: libEGL finds no driver.
func TestNoDriver(t *testing.T) {
	if inProcess(t, "__EGL_VENDOR_LIBRARY_DIRS=/nonexistent", "__EGL_VENDOR_LIBRARY_FILENAMES=/nonexistent.json") {
		refused(t, "libgl1-mesa-dri")
	}
}

// openNamed opens a device, nil if there is none.
func openNamed(t *testing.T, adapter string) *millrace.Device {
	t.Helper()
	d, err := millrace.Open("opengl:adapter=" + adapter)
	if err != nil {
		return nil
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestOldOpenGL: a driver without compute shaders is recognised, and the error has its version.
func TestOldOpenGL(t *testing.T) {
	if os.Getenv(processMark) == "" && openNamed(t, "llvmpipe") == nil {
		gputest.Missing(t, "opengl", "no llvmpipe")
	}
	if inProcess(t, "MESA_GL_VERSION_OVERRIDE=4.2") {
		_, err := driver(t).Open(runtime.Config{})
		if !errors.Is(err, runtime.ErrNoDriver) || !strings.Contains(err.Error(), "compute shaders need OpenGL 4.3") || !strings.Contains(err.Error(), "llvmpipe") {
			t.Errorf("%v", err)
		}
	}
}

// own makes a context as a program would.
func own(t *testing.T) *egl.Context {
	t.Helper()
	list, err := egl.Displays()
	if err != nil {
		gputest.Missing(t, "opengl", err)
	}
	for _, x := range list {
		if c, err := x.New(gpu.Major, gpu.Minor); err == nil {
			return c
		}
	}
	gputest.Missing(t, "opengl", "no context of OpenGL 4.3")
	return nil
}

// openError opens a device in a context that cannot be used.
func openError(t *testing.T, name string, want ...string) {
	t.Helper()
	_, err := millrace.Open("opengl:adapter=" + name)
	if err == nil {
		t.Fatal("opened")
	}
	for _, w := range append(want, name) {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v: no %q", err, w)
		}
	}
}

// TestUse: a device in the program's context; one device has it at a time, and another one after
// that is closed.
func TestUse(t *testing.T) {
	c := own(t)
	defer c.Destroy()
	Use("mine", Context{MakeCurrent: c.MakeCurrent, Release: c.Leave})
	for range 2 {
		d, err := millrace.Open("opengl:adapter=mine")
		if err != nil {
			t.Fatal(err)
		}
		holds(t, d)
		openError(t, "mine", "another thread")
		holds(t, d)
		d.Close()
	}
	Use("mine", Context{})
	openError(t, "mine", "there are")
}

// TestShare: a device next to the program's context, while the program continues on its thread.
func TestShare(t *testing.T) {
	if _, err := Share(); err == nil || !strings.Contains(err.Error(), "current") {
		t.Errorf("without a context: %v", err)
	}
	c := own(t)
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	defer c.Destroy()
	if err := c.MakeCurrent(); err != nil {
		t.Fatal(err)
	}
	defer c.Leave()
	beside, err := Share()
	if err != nil {
		t.Fatal(err)
	}
	Use("beside", beside)
	defer Use("beside", Context{})
	d, err := millrace.Open("opengl:adapter=beside")
	if err != nil {
		t.Fatal(err)
	}
	holds(t, d)
	if !c.Current() {
		t.Error("the program's thread has lost its context")
	}
	d.Close()
}

// TestForeignContexts: contexts that cannot be made current: one of another thread, one that the
// program has destroyed, and an invalid one.
func TestForeignContexts(t *testing.T) {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	c := own(t)
	Use("elsewhere", Context{MakeCurrent: c.MakeCurrent, Release: c.Leave})
	defer Use("elsewhere", Context{})
	if err := c.MakeCurrent(); err != nil {
		t.Fatal(err)
	}
	openError(t, "elsewhere", "EGL_BAD_ACCESS", "another thread")
	if !c.Current() {
		t.Error("this thread has lost its context")
	}
	c.Leave()
	d, err := millrace.Open("opengl:adapter=elsewhere") // now it is free
	if err != nil {
		t.Fatal(err)
	}
	holds(t, d)
	d.Close()
	c.Destroy()
	openError(t, "elsewhere", "EGL_BAD_CONTEXT")
	Use("none", Context{MakeCurrent: func() error { return nil }})
	defer Use("none", Context{})
	openError(t, "none", "no context is current")
}

// TestDestroyed: if the program destroys a context of a device, the device is lost or still works;
// other devices continue.
func TestDestroyed(t *testing.T) {
	c := own(t)
	Use("shaky", Context{MakeCurrent: c.MakeCurrent, Release: c.Leave})
	defer Use("shaky", Context{})
	d, err := millrace.Open("opengl:adapter=shaky")
	if err != nil {
		t.Fatal(err)
	}
	holds(t, d)
	c.Destroy() // waits until no thread has it
	v, err := millrace.Values[float32](millrace.FromSliceOn(d, []float32{1}).AddScalar(1))
	if err == nil && v[0] != 2 || err != nil && !errors.Is(err, millrace.ErrDeviceLost) {
		t.Errorf("%v, %v", v, err)
	}
	d.Close()
	holds(t, openNamed(t, ""))
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

package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
)

// TestWindow runs the program in an X server without a screen, and holds what is seen
// there against the filter's values on the CPU.
func TestWindow(t *testing.T) {
	server, err := exec.LookPath("Xvfb")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("no Xvfb (Debian: xvfb)")
	}
	dir := t.TempDir()
	display := fmt.Sprintf(":%d", 1000+os.Getpid()%50000)
	begin(t, exec.Command(server, display, "-screen", "0", "400x400x24", "-fbdir", dir, "-nolisten", "tcp"))
	wait(t, func() bool { _, err := os.Stat("/tmp/.X11-unix/X" + display[1:]); return err == nil })

	program := filepath.Join(dir, "filter")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(program, "-still")
	cmd.Env = append(os.Environ(), "DISPLAY="+display)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	begin(t, cmd)
	lines := bufio.NewScanner(out)
	shown := false
	for !shown && lines.Scan() {
		t.Log(lines.Text())
		shown = lines.Text() == "shown"
	}
	if !shown {
		t.Fatal("the program ended before it had shown anything")
	}

	picture := paint(256, 256)
	data, height, width := pixels(picture)
	cpu, err := millrace.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer cpu.Close()
	want, err := millrace.Values[float32](edges(millrace.FromSliceOn(cpu, data, height, width, 4), 0.5))
	if err != nil {
		t.Fatal(err)
	}
	var why string
	wait(t, func() bool { // until the server has painted it
		why = differs(t, filepath.Join(dir, "Xvfb_screen0"), want, height, width)
		return why == "" || time.Since(started) > patience-time.Second
	})
	if why != "" {
		t.Error(why)
	}
}

// differs compares the top left of a screenshot, in the format of xwd, with values of
// the filter.
func differs(t *testing.T, file string, want []float32, height, width int) string {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	field := func(i int) int { return int(binary.BigEndian.Uint32(b[4*i:])) }
	head, order, bits, line, colors := field(0), field(7), field(11), field(12), field(19)
	if order != 0 || bits != 32 || len(b) < head+12*colors+line*height {
		t.Fatalf("a screenshot of %d bytes, %d bits a pixel, byte order %d", len(b), bits, order)
	}
	image := b[head+12*colors:]
	bad, first := 0, ""
	for y := range height {
		for x := range width {
			pixel := image[y*line+4*x:]
			for c := range 3 { // blue is first
				got, v := float64(pixel[2-c]), 255*float64(want[(y*width+x)*4+c])
				if d := got - v; d < -1.5 || d > 1.5 {
					if bad++; bad == 1 {
						first = fmt.Sprintf("channel %d of (%d,%d) is %v, want %.1f", c, x, y, got, v)
					}
				}
			}
		}
	}
	if bad > 0 {
		return fmt.Sprintf("%s (%d differ)", first, bad)
	}
	return ""
}

// begin starts a process that ends with the test.
func begin(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

const patience = 20 * time.Second

var started = time.Now()

// wait waits until something is so.
func wait(t *testing.T, so func() bool) {
	t.Helper()
	for started = time.Now(); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Since(started) > patience {
			t.Fatal("nothing came")
		}
	}
}

// TestFilter: whatever the filter is made of, it is two kernels.
func TestFilter(t *testing.T) {
	d, err := millrace.Open("cpu:explore=wait")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	data, height, width := pixels(paint(64, 48))
	y := edges(millrace.FromSliceOn(d, data, height, width, 4), 1)
	if _, err := millrace.Values[float32](y); err != nil {
		t.Fatal(err)
	}
	if n := d.Stats().Runtime.Launches; n != 2 {
		t.Errorf("%d launches, want 2", n)
	}
}

//go:build unix

package gpuchild

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// TestCalls runs each method in the other process and compares with this one.
func TestCalls(t *testing.T) {
	d := openFake(t, "fake", "an adapter")
	if want := (&fake{adapter: "an adapter"}).Info(); !reflect.DeepEqual(d.Info(), want) {
		t.Errorf("%+v, want %+v", d.Info(), want)
	}
	b, err := d.NewBuffer(3*slotSize+1, gpurun.Storage)
	if err != nil || b.Size() != 3*slotSize+16 {
		t.Fatalf("%v, %v", b, err)
	}
	data := make([]byte, 3*slotSize-4)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	var at []int64
	if err := d.Write(b, 8, int64(len(data)), func(dst []byte, i int64) { at = append(at, i); copy(dst, data[i:]) }); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(data))
	read := func() {
		t.Helper()
		if err := d.Read(b, 8, int64(len(got)), func(src []byte, i int64) { at = append(at, i); copy(got[i:], src) }); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if !bytes.Equal(got, data) || !reflect.DeepEqual(at, []int64{0, slotSize, 2 * slotSize, 0, slotSize, 2 * slotSize}) {
		t.Errorf("read differs from what was written, by parts at %v", at)
	}
	p, err := d.NewPipeline("three", []gpurun.Binding{gpurun.ReadOnly, gpurun.Params})
	if err != nil {
		t.Fatal(err)
	}
	params, err := d.NewBuffer(16, gpurun.Uniform)
	if err != nil {
		t.Fatal(err)
	}
	x := gpurun.Dispatch{Pipe: p, Bind: []gpurun.Range{{Buf: b, Off: 8, Size: 4}, {Buf: params, Size: 4}}}
	if err := d.Submit([]gpurun.Dispatch{x, x}, params, []byte{1, 2, 3, 4}); err != nil || d.Backlog() != 1 {
		t.Errorf("%v, backlog %d", err, d.Backlog())
	}
	read()
	if got[0] != data[0]+14 || !bytes.Equal(got[1:], data[1:]) {
		t.Errorf("after two dispatches %d, was %d", got[0], data[0])
	}
	if err := d.Wait(); err != nil || d.Backlog() != 0 {
		t.Errorf("%v, backlog %d", err, d.Backlog())
	}
	k := d.(gpurun.Keeper)
	binary, err := k.Binary(p)
	if err != nil || string(binary) != "three  " {
		t.Errorf("%q, %v", binary, err)
	}
	if _, err := k.NewPipelineOf(binary, nil); err != nil {
		t.Error(err)
	}
	p.Release()
	p.Release()
	if err := d.Submit([]gpurun.Dispatch{x}, nil, nil); err == nil {
		t.Error("a pipeline that was released runs")
	}
	b.Release()
	if err := d.Write(b, 0, 4, func([]byte, int64) {}); err == nil {
		t.Error("a buffer that was released was written")
	}
}

// TestRecordings: the other process keeps lists, and runs them again by their number.
func TestRecordings(t *testing.T) {
	d := openFake(t, "fake", "")
	rec := d.(gpurun.Recorder)
	b, err := d.NewBuffer(32, gpurun.Storage)
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.NewPipeline("three", nil)
	if err != nil {
		t.Fatal(err)
	}
	byteAt := func(at int64) (v byte) {
		if err := d.Read(b, at&^3, 4, func(src []byte, _ int64) { v = src[at&3] }); err != nil {
			t.Fatal(err)
		}
		return v
	}
	x := gpurun.Dispatch{Pipe: p, Bind: []gpurun.Range{{Buf: b, Size: 3}}}
	r, err := rec.Record(gpurun.Range{Buf: b, Off: 4, Size: 4}, []gpurun.Dispatch{x, x})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Write(b, 0, 16, func(dst []byte, _ int64) { copy(dst, []byte{0, 0, 0, 9, 9, 9, 9, 9, 9}) }); err != nil {
		t.Fatal(err)
	}
	once := gpurun.Work{Zero: gpurun.Range{Buf: b, Off: 8, Size: 4}, List: []gpurun.Dispatch{x}}
	for i := range 3 {
		list := []gpurun.Work{{Rec: r}, once}[:1+i/2]
		if err := rec.Play(list); err != nil {
			t.Fatal(err)
		}
		if got := byteAt(0); int(got) != 10*(i+1)+5*(i/2) || byteAt(3) != 9 || byteAt(4) != 0 || byteAt(7) != 0 || (byteAt(8) == 0) != (i == 2) {
			t.Errorf("run %d: %d", i, got)
		}
	}
	if d.Backlog() != 4 {
		t.Errorf("backlog %d", d.Backlog())
	}
	if err := rec.Play([]gpurun.Work{{Rec: r}}); !errors.Is(err, gpurun.ErrStale) || byteAt(0) != 35 {
		t.Errorf("stale: %v, %d", err, byteAt(0))
	}
	if _, err := rec.Record(gpurun.Range{}, nil); !errors.Is(err, gpurun.ErrMemory) {
		t.Errorf("without room: %v", err)
	}
	r.Release()
	r.Release()
	if err := rec.Play([]gpurun.Work{{Rec: r}}); !errors.Is(err, gpurun.ErrStale) {
		t.Errorf("released: %v", err)
	}
	other := openFake(t, "fake", "")
	far, err := other.NewBuffer(16, gpurun.Storage)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rec.Record(gpurun.Range{Buf: far, Size: 4}, []gpurun.Dispatch{x}); err == nil {
		t.Error("another device's buffer was recorded")
	}
	if _, err := other.(gpurun.Recorder).Record(gpurun.Range{}, []gpurun.Dispatch{x}); err == nil {
		t.Error("another device's pipeline was recorded")
	}
	if err := rec.Play([]gpurun.Work{{Zero: gpurun.Range{Buf: far, Size: 4}, List: []gpurun.Dispatch{x}}}); err == nil {
		t.Error("another device's buffer was filled")
	}
	if err := other.(gpurun.Recorder).Play([]gpurun.Work{{Rec: r}}); err == nil || errors.Is(err, gpurun.ErrStale) {
		t.Errorf("another device's recording: %v", err)
	}
	last, err := rec.Record(gpurun.Range{}, []gpurun.Dispatch{x})
	if err != nil {
		t.Fatal(err)
	}
	d.Lose(errors.New("a test"))
	if err := rec.Play([]gpurun.Work{{Rec: last}}); !errors.Is(err, gpurun.ErrLost) {
		t.Errorf("lost: %v", err)
	}
	last.Release()
	d.Close()
	if err := rec.Play([]gpurun.Work{{Rec: r}}); !errors.Is(err, gpurun.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// TestAbilities: the device has those optional methods that the other process's has.
func TestAbilities(t *testing.T) {
	for _, a := range []reply{{}, {Keeper: true}, {Records: true}, {Keeper: true, Records: true}} {
		d := new(Device).able(&a)
		_, keeps := d.(gpurun.Keeper)
		_, records := d.(gpurun.Recorder)
		if keeps != a.Keeper || records != a.Records {
			t.Errorf("%+v: exports binaries %v, records %v", a, keeps, records)
		}
	}
}

// TestErrors: the kinds by which a Runner distinguishes errors survive the transfer.
func TestErrors(t *testing.T) {
	d := openFake(t, "fake", "")
	_, err := d.NewBuffer(1<<40, gpurun.Storage)
	if !errors.Is(err, gpurun.ErrMemory) || !strings.Contains(err.Error(), "1099511627776 bytes") {
		t.Errorf("memory: %v", err)
	}
	_, err = d.NewPipeline("bad", nil)
	var se *gpurun.SourceError
	if !errors.As(err, &se) || se.Log != "line 1: bad" {
		t.Errorf("source: %v", err)
	}
	if _, err = d.(gpurun.Keeper).NewPipelineOf(nil, nil); !errors.Is(err, gpurun.ErrBinary) {
		t.Errorf("binary: %v", err)
	}
	if _, err := Open("fake", "none"); err == nil || !strings.Contains(err.Error(), "no adapter named none") {
		t.Errorf("open: %v", err)
	}
	other := openFake(t, "fake", "")
	b, err := other.NewBuffer(16, gpurun.Storage)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Read(b, 0, 4, nil); err == nil {
		t.Error("another device's buffer was read")
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := d.Close(); !errors.Is(err, gpurun.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
	if _, err := d.NewBuffer(16, gpurun.Storage); !errors.Is(err, gpurun.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// TestFaults: however the process ends, the device is lost and says how.
func TestFaults(t *testing.T) {
	want := map[string]string{
		"aborts": "exit status 2: thread panicked at core.rs:1; SIGABRT: abort", "segfaults": "SIGSEGV: segmentation", "killed": "signal: killed",
		"exits": "exit status 3", "panics": "panic: at the disco", "loses": "its adapter fell off",
	}
	for name := range faults {
		t.Run(name, func(t *testing.T) {
			d := openFake(t, name, "")
			b, err := d.NewBuffer(2*slotSize, gpurun.Storage)
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for range 4 { // calls of other goroutines are answered meanwhile, with a result or an error
				wg.Go(func() {
					for d.Usable() == nil {
						_ = d.Read(b, 0, 2*slotSize, func([]byte, int64) {})
					}
				})
			}
			err = d.Wait()
			if !errors.Is(err, gpurun.ErrLost) || !strings.Contains(err.Error(), want[name]) {
				t.Errorf("%v, want %q", err, want[name])
			}
			wg.Wait()
			if _, err := d.NewBuffer(16, gpurun.Storage); !errors.Is(err, gpurun.ErrLost) {
				t.Errorf("afterwards: %v", err)
			}
			b.Release()
			if err := d.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if name != "loses" {
				if _, err := Open(name+" at once", ""); !errors.Is(err, gpurun.ErrLost) {
					t.Errorf("at once: %v", err)
				}
			}
		})
	}
}

// TestNothingLeft: processes, goroutines, files and memory end with the device.
func TestNothingLeft(t *testing.T) {
	count := func() (int, int) {
		files, _ := filepath.Glob("/proc/self/fd/*")
		return goruntime.NumGoroutine(), len(files)
	}
	openFake(t, "fake", "").Close()
	routines, files := count()
	for range 5 {
		d := openFake(t, "fake", "")
		d.Close()
		lost := openFake(t, "exits", "")
		_ = lost.Wait()
		lost.Close()
		_, _ = Open("fake", "none")
	}
	for range 100 {
		if r, f := count(); r <= routines && f <= files {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if r, f := count(); r > routines || f > files {
		t.Errorf("%d goroutines and %d files, were %d and %d", r, f, routines, files)
	}
	if out, err := exec.Command("ps", "-o", "stat=,args=", "--ppid", pid()).Output(); err == nil {
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, os.Args[0]) || strings.Contains(line, "<defunct>") {
				t.Errorf("a process is left: %s", line)
			}
		}
	}
}

func pid() string {
	p, _ := os.Readlink("/proc/self")
	return p
}

// TestNoArguments: a library in a program of another language may have none.
func TestNoArguments(t *testing.T) {
	defer func(args []string) { os.Args = args }(os.Args)
	os.Args = nil
	if err := openFake(t, "fake", "").Close(); err != nil {
		t.Error(err)
	}
}

// TestInherited: files inherited by processes that were started early do not delay the end.
func TestInherited(t *testing.T) {
	t.Setenv(inherits, "1")
	start := time.Now()
	d := openFake(t, "killed", "")
	if err := d.Wait(); !errors.Is(err, gpurun.ErrLost) || !strings.Contains(err.Error(), "killed") {
		t.Errorf("%v", err)
	}
	if err := openFake(t, "fake", "").Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > inherited*time.Second*2/3 {
		t.Errorf("it took %v", took)
	}
}

// TestNoMemory: without a place for shared memory there is no device, and the error names the
// attempts.
func TestNoMemory(t *testing.T) {
	defer func(was func() []string) { sharedDirs = was }(sharedDirs)
	sharedDirs = func() []string { return []string{"/nonexistent", "/dev/null"} }
	if _, err := Open("fake", ""); !errors.Is(err, ErrProcess) || !strings.Contains(err.Error(), "/nonexistent") || !strings.Contains(err.Error(), "/dev/null") {
		t.Errorf("%v", err)
	}
}

// TestByHand: the environment variable alone makes no server, and does not hang.
func TestByHand(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), mark+"=fake")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "millrace did not set it") {
		t.Errorf("%v\n%s", err, out)
	}
}

func BenchmarkWait(b *testing.B) {
	d := openFake(b, "fake", "")
	for b.Loop() {
		if err := d.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSubmit(b *testing.B) {
	d := openFake(b, "fake", "")
	buf, err := d.NewBuffer(1<<10, gpurun.Storage)
	if err != nil {
		b.Fatal(err)
	}
	p, err := d.NewPipeline("p", nil)
	if err != nil {
		b.Fatal(err)
	}
	x := gpurun.Dispatch{Pipe: p, Bind: []gpurun.Range{{Buf: buf, Size: 4}, {Buf: buf, Size: 4}, {Buf: buf, Size: 4}}}
	for b.Loop() {
		if err := d.Submit([]gpurun.Dispatch{x}, buf, make([]byte, 64)); err != nil {
			b.Fatal(err)
		}
	}
}

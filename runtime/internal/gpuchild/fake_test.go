//go:build unix

package gpuchild

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// fake is a device without a GPU: a pipeline adds its shader's length to the first byte of each
// bound buffer.
type fake struct {
	adapter string
	queued  int
}

type fakeBuffer []byte

func (b fakeBuffer) Size() int64 { return int64(len(b)) }
func (b fakeBuffer) Release()    {}

type fakePipeline struct{ source string }

func (fakePipeline) Release() {}

func (f *fake) Info() gpurun.Info {
	return gpurun.Info{Name: f.adapter, Kind: "CPU", Limits: gpurun.Limits{Binding: 1 << 20, StorageBuffers: 8}}
}

func (f *fake) NewBuffer(size int64, _ gpurun.Use) (gpurun.Buffer, error) {
	if size > 1<<28 {
		return nil, fmt.Errorf("%w: %d bytes", gpurun.ErrMemory, size)
	}
	return fakeBuffer(make([]byte, (size+15)&^15)), nil
}

func (f *fake) NewPipeline(source string, bindings []gpurun.Binding) (gpurun.Pipeline, error) {
	if source == "bad" {
		return nil, &gpurun.SourceError{Log: "line 1: bad"}
	}
	return fakePipeline{source + strings.Repeat(" ", len(bindings))}, nil
}

func (f *fake) Binary(p gpurun.Pipeline) ([]byte, error) { return []byte(p.(fakePipeline).source), nil }

func (f *fake) NewPipelineOf(binary []byte, _ []gpurun.Binding) (gpurun.Pipeline, error) {
	if len(binary) == 0 {
		return nil, gpurun.ErrBinary
	}
	return fakePipeline{string(binary)}, nil
}

func (f *fake) Write(b gpurun.Buffer, off, n int64, fill func(dst []byte, at int64)) error {
	for at := int64(0); at < n; at += 1 << 20 {
		m := min(1<<20, n-at)
		fill(b.(fakeBuffer)[off+at:off+at+m], at)
	}
	return nil
}

func (f *fake) Read(b gpurun.Buffer, off, n int64, drain func(src []byte, at int64)) error {
	for at := int64(0); at < n; at += 1 << 20 {
		m := min(1<<20, n-at)
		drain(b.(fakeBuffer)[off+at:off+at+m], at)
	}
	return nil
}

func (f *fake) Submit(list []gpurun.Dispatch, params gpurun.Buffer, words []byte) error {
	if len(words) > 0 {
		copy(params.(fakeBuffer), words)
	}
	for _, x := range list {
		for _, b := range x.Bind {
			b.Buf.(fakeBuffer)[b.Off] += byte(len(x.Pipe.(fakePipeline).source))
		}
	}
	f.queued++
	return nil
}

// fakeRecording submits its list, until it has run as often as its last buffer's size says.
type fakeRecording struct {
	zero gpurun.Range
	list []gpurun.Dispatch
	left int
}

func (f *fake) Record(zero gpurun.Range, list []gpurun.Dispatch) (gpurun.Recording, error) {
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: no room for an empty list", gpurun.ErrMemory)
	}
	bind := list[len(list)-1].Bind
	return &fakeRecording{zero, list, int(bind[len(bind)-1].Size)}, nil
}

func (f *fake) Play(list []gpurun.Work) error {
	for _, x := range list {
		if r, ok := x.Rec.(*fakeRecording); ok {
			if r.left--; r.left < 0 {
				return fmt.Errorf("too often: %w", gpurun.ErrStale)
			}
			x.Zero, x.List = r.zero, r.list
		}
		if b, ok := x.Zero.Buf.(fakeBuffer); ok {
			clear(b[x.Zero.Off : x.Zero.Off+x.Zero.Size])
		}
		_ = f.Submit(x.List, nil, nil)
	}
	return nil
}

func (r *fakeRecording) Release() { r.left = 0 }

func (f *fake) Backlog() int  { return f.queued }
func (f *fake) Wait() error   { f.queued = 0; return nil }
func (f *fake) Usable() error { return nil }
func (f *fake) Lose(error)    {}
func (f *fake) Close() error  { return nil }

// faults are ways in which drivers end their processes, by name.
var faults = map[string]func() error{
	"aborts":    func() error { os.Stderr.WriteString("thread panicked at core.rs:1\n"); return raise(syscall.SIGABRT) },
	"segfaults": func() error { return raise(syscall.SIGSEGV) },
	"killed":    func() error { return raise(syscall.SIGKILL) },
	"exits":     func() error { os.Exit(3); return nil },
	"panics":    func() error { panic("at the disco") },
	"loses":     func() error { return fmt.Errorf("%w: its adapter fell off", gpurun.ErrLost) },
}

func raise(s syscall.Signal) error {
	_ = syscall.Kill(os.Getpid(), s)
	time.Sleep(time.Minute)
	return nil
}

// faulty is a fake whose driver fails when it waits.
type faulty struct {
	fake
	wait func() error
}

func (f *faulty) Wait() error { return f.wait() }

// inherits marks processes that start another process before they serve. That process inherits
// their files and lives for inherited seconds.
const (
	inherits  = "MILLRACE_TEST_INHERITS"
	inherited = 30
)

func init() {
	if os.Getenv(inherits) != "" && os.Getenv(mark) != "" {
		files := []*os.File{os.NewFile(3, ""), os.NewFile(4, ""), os.NewFile(5, "")}
		_, err := os.StartProcess("/bin/sleep", []string{"sleep", strconv.Itoa(inherited)}, &os.ProcAttr{Env: []string{}, Files: append([]*os.File{nil, nil, nil}, files...)})
		if err != nil {
			panic(err)
		}
	}
	Serve("fake", func(adapter string) (gpurun.Device, error) {
		if adapter == "none" {
			return nil, errors.New("no adapter named none")
		}
		return &fake{adapter: adapter}, nil
	})
	for name, do := range faults {
		Serve(name, func(string) (gpurun.Device, error) { return &faulty{wait: do}, nil })
		Serve(name+" at once", func(string) (gpurun.Device, error) { return nil, do() })
	}
}

func openFake(t testing.TB, driver, adapter string) gpurun.Device {
	t.Helper()
	d, err := Open(driver, adapter)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

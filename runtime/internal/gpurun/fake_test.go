package gpurun

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/wgsl"
	"github.com/millrace-go/millrace/runtime"
)

// fake is a Device that counts calls and computes nothing.
type fake struct {
	info Info

	mu         sync.Mutex
	lost       error
	closed     bool
	buffers    int // made and not released
	bytes      int64
	most       int64 // bytes of available memory
	pipelines  int   // made and not released
	submitted  [][]Dispatch
	queued     int
	waits      int
	written    int                   // submissions with words to write
	refuse     error                 // error of NewPipeline
	short      map[string]int        // how often methods lack memory, by name
	compiling  func(source string)   // called first by NewPipeline, concurrent with other calls
	reading    func()                // called first by Read, likewise
	made       map[string]int        // how often texts were compiled
	afterwards func(list []Dispatch) // replaces the shaders' work
}

func newFake() *fake {
	return &fake{most: 1 << 40, made: map[string]int{}, info: Info{
		Name: "a fake", Kind: "DiscreteGPU", Driver: "1.0",
		Limits: Limits{Binding: 1 << 27, Buffer: 1 << 31, Uniform: 1 << 16, Align: 256, StorageBuffers: 16, Groups: 65535, GroupSize: 256, WorkgroupStorage: 1 << 14},
	}}
}

type fakeBuffer struct {
	dev  *fake
	data []byte
	size int64
	gone bool
}

func (b *fakeBuffer) Size() int64 { return b.size }

func (b *fakeBuffer) Release() {
	b.dev.mu.Lock()
	defer b.dev.mu.Unlock()
	if !b.gone {
		b.gone = true
		b.dev.buffers--
		b.dev.bytes -= b.size
	}
}

// memory is allocated at the first use.
func (b *fakeBuffer) memory() []byte {
	if b.data == nil {
		b.data = make([]byte, b.size)
	}
	return b.data
}

type fakePipeline struct {
	dev      *fake
	source   string
	bindings int
	gone     bool
}

func (p *fakePipeline) Release() {
	p.dev.mu.Lock()
	defer p.dev.mu.Unlock()
	if !p.gone {
		p.gone = true
		p.dev.pipelines--
	}
}

func (f *fake) Info() Info { return f.info }

func (f *fake) usable() error {
	if f.closed {
		return ErrClosed
	}
	return f.lost
}

// call begins a call.
func (f *fake) call() (end func(), err error) {
	f.mu.Lock()
	return f.mu.Unlock, f.usable()
}

// lacks returns ErrMemory the given number of times for a method.
func (f *fake) lacks(method string) error {
	if f.short[method] == 0 {
		return nil
	}
	f.short[method]--
	return ErrMemory
}

func (f *fake) NewBuffer(size int64, _ Use) (Buffer, error) {
	end, err := f.call()
	defer end()
	if size = (size + 15) &^ 15; err == nil && f.bytes+size > f.most {
		err = ErrMemory
	}
	if err != nil {
		return nil, err
	}
	f.buffers++
	f.bytes += size
	return &fakeBuffer{dev: f, size: size}, nil
}

func (f *fake) NewPipeline(source string, bindings []Binding) (Pipeline, error) {
	if f.compiling != nil {
		f.compiling(source)
	}
	end, err := f.call()
	defer end()
	if err == nil {
		f.made[source]++
		if err = f.refuse; err == nil {
			err = f.lacks("NewPipeline")
		}
	}
	if err != nil {
		return nil, err
	}
	f.pipelines++
	return &fakePipeline{dev: f, source: source, bindings: len(bindings)}, nil
}

func (f *fake) Write(b Buffer, off, n int64, fill func([]byte, int64)) error {
	end, err := f.call()
	defer end()
	if err == nil {
		err = f.lacks("Write")
	}
	if err != nil {
		return err
	}
	fill(b.(*fakeBuffer).memory()[off:off+n], 0)
	return nil
}

func (f *fake) Read(b Buffer, off, n int64, drain func([]byte, int64)) error {
	if f.reading != nil {
		f.reading()
	}
	end, err := f.call()
	defer end()
	if err == nil {
		err = f.lacks("Read")
	}
	if err != nil {
		return err
	}
	drain(b.(*fakeBuffer).memory()[off:off+n], 0)
	return nil
}

func (f *fake) Submit(list []Dispatch, params Buffer, words []byte) error {
	end, err := f.call()
	defer end()
	if err == nil {
		err = f.lacks("Submit")
	}
	if err != nil {
		return err
	}
	if len(words) > 0 {
		f.written++
	}
	for _, x := range list {
		p := x.Pipe.(*fakePipeline)
		if p.gone || len(x.Bind) != p.bindings {
			return errors.New("fake: a pipeline that is gone, or is bound in another way")
		}
		for _, r := range x.Bind {
			b := r.Buf.(*fakeBuffer)
			if b.gone || r.Off%f.info.Limits.Align != 0 || r.Off < 0 || r.Off+r.Size > b.size {
				return errors.New("fake: a bad range")
			}
		}
	}
	copy(params.(*fakeBuffer).memory(), words)
	f.submitted = append(f.submitted, slices.Clone(list))
	f.queued++
	if f.afterwards != nil {
		f.afterwards(list)
	}
	return nil
}

func (f *fake) Backlog() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.queued
}

func (f *fake) Wait() error {
	end, err := f.call()
	defer end()
	f.queued, f.waits = 0, f.waits+1
	return err
}

func (f *fake) Usable() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.usable()
}

func (f *fake) Lose(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = errors.Join(ErrLost, why)
}

func (f *fake) Close() error {
	end, err := f.call()
	defer end()
	if errors.Is(err, ErrClosed) {
		return err
	}
	f.closed = true
	return nil
}

// open makes a Runner on a fake.
func open(t testing.TB, c runtime.Config) (*Runner, *fake) {
	t.Helper()
	f := newFake()
	d := New("fake", f, wgsl.Dialect, c)
	t.Cleanup(func() { _ = d.Close() })
	return d, f
}

func openDevice(t testing.TB, c runtime.Config) *Runner {
	d, _ := open(t, c)
	return d
}

func parse(t testing.TB, src string) *codegen.Kernel {
	t.Helper()
	k, err := codegen.Parse(src)
	if err != nil {
		t.Fatalf("%v in\n%s", err, src)
	}
	return k
}

const copyKernel = "in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\nstore 1 %0"

// launch makes a launch over dims with dense operands in separate buffers.
func launch(t testing.TB, d *Runner, kernel string, kept int, dims ...int64) *runtime.Launch {
	t.Helper()
	k := parse(t, kernel)
	prog, err := d.Build(k)
	if err != nil {
		t.Fatalf("build: %v\n%s", err, k)
	}
	l := &runtime.Launch{Prog: prog, Rank: len(dims), Kept: kept, Scalars: make([]uint64, len(k.Scalars))}
	copy(l.Dims[:], dims)
	for _, o := range k.Operands {
		var a runtime.Access
		n := int64(1)
		for i := len(dims) - 1; i >= 0; i-- {
			if !o.Row || i < kept {
				a.Stride[i] = n
				n *= dims[i]
			}
		}
		if o.Kind != codegen.Index {
			if a.Buf, err = d.Alloc(n * wordSize); err != nil {
				t.Fatal(err)
			}
		}
		l.Args = append(l.Args, a)
	}
	return l
}

// ranOn runs a kernel on 100 elements.
func ranOn(t testing.TB, d *Runner, kernel string) *runtime.Launch {
	t.Helper()
	l := launch(t, d, kernel, 1, 100)
	if err := d.Run([]runtime.Launch{*l}); err != nil {
		t.Fatal(err)
	}
	return l
}

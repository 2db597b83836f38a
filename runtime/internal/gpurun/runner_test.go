package gpurun

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace-go/millrace/codegen/spirv"
	"github.com/millrace-go/millrace/codegen/wgsl"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

func TestFaults(t *testing.T) {
	defer fault.Reset()
	d := openDevice(t, runtime.Config{})
	l := launch(t, d, copyKernel, 1, 100)
	fault.Set(fault.Alloc, 1)
	if _, err := d.Alloc(16); !errors.Is(err, runtime.ErrOutOfMemory) {
		t.Errorf("alloc: %v", err)
	}
	fault.Set(fault.Compile, 1)
	var ce *runtime.CompileError
	if _, err := d.Build(parse(t, copyKernel)); !errors.As(err, &ce) {
		t.Errorf("build: %v", err)
	}
	var le *runtime.LaunchError
	fault.Set(fault.Compile, 1) // of the shader, this time
	if err := d.Run([]runtime.Launch{*l}); !errors.As(err, &le) || !errors.As(err, &ce) || ce.Source == "" {
		t.Errorf("run: %v", err)
	}
	fault.Set(fault.Launch, 1)
	if err := d.Run([]runtime.Launch{*l}); !errors.As(err, &le) {
		t.Errorf("run: %v", err)
	}
	if err := d.Run([]runtime.Launch{*l}); err != nil {
		t.Errorf("after the faults: %v", err)
	}
	if s := d.Stats(); s.CompileFails != 2 || s.Launches != 1 {
		t.Errorf("%d failed compiles and %d launches, want 2 and 1", s.CompileFails, s.Launches)
	}
}

func TestMemory(t *testing.T) {
	d := openDevice(t, runtime.Config{MemoryLimit: 1 << 20})
	a, err := d.Alloc(600 << 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Alloc(600 << 10); !errors.Is(err, runtime.ErrOutOfMemory) {
		t.Errorf("above the limit: %v", err)
	}
	d.Free(a)
	d.Free(a)
	b, err := d.Alloc(600<<10 - 100) // of the same size class
	if err != nil {
		t.Fatal(err)
	}
	if s := d.Stats(); s.PoolHits != 1 || s.PoolBytes != 0 || s.AllocBytes < 600<<10 {
		t.Errorf("%d pool hits, %d bytes pooled, %d live", s.PoolHits, s.PoolBytes, s.AllocBytes)
	}
	d.Free(b)
	if _, err := d.Alloc(900 << 10); err != nil { // the pool makes room
		t.Errorf("after the pool is trimmed: %v", err)
	}
	for _, n := range []int64{-1, 1 << 40} {
		if _, err := d.Alloc(n); !errors.Is(err, runtime.ErrOutOfMemory) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := openDevice(t, runtime.Config{}).Alloc(0); err != nil {
		t.Errorf("no bytes: %v", err)
	}
}

// TestBacklog queues more submissions than may be pending.
func TestBacklog(t *testing.T) {
	d, f := open(t, runtime.Config{})
	l := launch(t, d, copyKernel, 1, 100)
	for range maxBacklog + 10 {
		if err := d.Run([]runtime.Launch{*l}); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.Backlog(); n > maxBacklog || f.waits != 1 {
		t.Errorf("%d submissions are queued, waited %d times", n, f.waits)
	}
}

// TestOutOfMemory: the pool is released before an allocation fails.
func TestOutOfMemory(t *testing.T) {
	d, f := open(t, runtime.Config{})
	f.most = 10 << 20
	a, err := d.Alloc(6 << 20)
	if err != nil {
		t.Fatal(err)
	}
	d.Free(a)
	if a, err = d.Alloc(9 << 20); err != nil || f.buffers != 1 {
		t.Fatalf("%v, with %d buffers", err, f.buffers)
	}
	_, err = d.Alloc(6 << 20)
	if !errors.Is(err, runtime.ErrOutOfMemory) || !strings.HasPrefix(err.Error(), "fake: ") {
		t.Errorf("two buffers where there is memory for one: %v", err)
	}
	if _, err := openDevice(t, runtime.Config{}).memory.own(a); err == nil {
		t.Error("a buffer of another device was taken")
	}
}

// TestPoolGivesWay: unused memory is released before a Run fails for lack of words, a copy for lack
// of staging memory, or a shader for lack of memory. A submission is not repeated, and finds memory
// the next time.
func TestPoolGivesWay(t *testing.T) {
	d, f := open(t, runtime.Config{})
	l := launch(t, d, lookKernel, 1, 100)
	l.Args[0].Stride[0], l.Args[0].IndexStride, l.Args[0].IndexSize = 0, 1, 100
	fill := func() { // fills the pool
		x, err := d.Alloc(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		d.Free(x)
	}
	run := func() error { return d.Run([]runtime.Launch{*l}) }
	host := make([]byte, 400)
	kernel := negKernel
	fill()
	f.most = f.bytes + 100 // and not one word more
	if err := run(); err != nil {
		t.Errorf("words: %v", err)
	}
	f.most = 1 << 40
	for _, c := range []struct {
		method string
		call   func() error
		again  bool
	}{
		{"Write", func() error { return d.Write(l.Args[0].Buf, ir.Float32, 0, host) }, true},
		{"Read", func() error { return d.Read(host, ir.Float32, l.Args[0].Buf, 0) }, true},
		{"Write", run, true}, {"Read", run, true}, {"Submit", run, false},
		{"NewPipeline", func() error { return d.Run([]runtime.Launch{*launch(t, d, kernel, 1, 100)}) }, true},
	} {
		for _, n := range []int{1, 2} { // number of failures
			kernel = opKernel([]string{"abs", "sqrt"}[n-1])
			fill()
			f.short = map[string]int{c.method: n}
			if err := c.call(); (err == nil) != (c.again && n == 1) || err != nil && !errors.Is(err, runtime.ErrOutOfMemory) {
				t.Errorf("%s, %d times: %v", c.method, n, err)
			}
			f.short = nil
			if d.memory.pooled != 0 {
				t.Errorf("%s: %d bytes are pooled", c.method, d.memory.pooled)
			}
			if err := c.call(); err != nil {
				t.Errorf("%s, afterwards: %v", c.method, err)
			}
		}
	}
	f.short = map[string]int{"Write": 1}
	if err := d.Write(l.Args[0].Buf, ir.Float32, 0, host); !errors.Is(err, runtime.ErrOutOfMemory) {
		t.Errorf("with nothing to give: %v", err)
	}
}

// TestWordsAreCounted: memory of launches besides tensors is counted as reusable, bounded for all
// programs, allocated beyond the limit, and does not enlarge the pool.
func TestWordsAreCounted(t *testing.T) {
	d, f := open(t, runtime.Config{MemoryLimit: 64 << 10})
	l := launch(t, d, negKernel, 1, 100)
	a, err := d.Alloc(60 << 10)
	if err != nil {
		t.Fatal(err)
	}
	d.Free(a)
	if s := d.Stats(); s.PoolBytes != 60<<10 {
		t.Errorf("%d bytes are pooled", s.PoolBytes)
	}
	if err := d.Run([]runtime.Launch{*l}); err != nil {
		t.Fatal(err)
	}
	if s := d.Stats(); s.PoolBytes != 1<<14 || s.PoolBytes+s.AllocBytes != f.bytes {
		t.Errorf("%d bytes are kept for reuse, the device has %d", s.PoolBytes, f.bytes)
	}
	for n := range 40 { // as many words, with other values
		list := make([]runtime.Launch, 1+n%30)
		for i := range list {
			list[i] = *l
			list[i].Dims[0] = int64(1 + n)
		}
		if err := d.Run(list); err != nil {
			t.Fatal(err)
		}
	}
	s := d.Stats()
	if most := int64(len(d.params) * 1 << 15); s.PoolBytes > most || s.PoolBytes+s.AllocBytes != f.bytes {
		t.Errorf("%d bytes are kept for reuse, at most %d are, the device has %d", s.PoolBytes, most, f.bytes)
	}
	if err := d.Close(); err != nil || d.Stats().PoolBytes != 0 {
		t.Errorf("%v, %d bytes of a closed device", err, d.Stats().PoolBytes)
	}
}

// TestVanishes: every call says that the device is lost, and names it.
func TestVanishes(t *testing.T) {
	defer fault.Reset()
	d := openDevice(t, runtime.Config{})
	l := launch(t, d, copyKernel, 1, 100)
	fault.Set("fake-lost", 1)
	for name, call := range map[string]func() error{
		"alloc": func() error { _, err := d.Alloc(16); return err },
		"write": func() error { return d.Write(l.Args[0].Buf, ir.Float32, 0, make([]byte, 4)) },
		"read":  func() error { return d.Read(make([]byte, 4), ir.Float32, l.Args[0].Buf, 0) },
		"build": func() error { _, err := d.Build(parse(t, copyKernel)); return err },
		"run":   func() error { return d.Run([]runtime.Launch{*l}) },
		"try":   func() error { _, err := d.Try(l); return err },
		"wait":  func() error { return d.Wait(true) },
	} {
		if err := call(); !errors.Is(err, runtime.ErrDeviceLost) || !strings.HasPrefix(err.Error(), "fake: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRefusedSource: the error has the log of the API's compiler and the text.
func TestRefusedSource(t *testing.T) {
	d, f := open(t, runtime.Config{})
	l := launch(t, d, copyKernel, 1, 100)
	f.refuse = &SourceError{Log: "line 3"}
	var ce *runtime.CompileError
	if err := d.Run([]runtime.Launch{*l}); !errors.As(err, &ce) || ce.Log != "line 3" || !strings.Contains(ce.Source, "main") {
		t.Errorf("run: %v", err)
	}
	f.refuse = nil
	if err := d.Run([]runtime.Launch{*l}); err != nil || d.Stats().CompileFails != 1 || d.Stats().Compiles != 1 {
		t.Errorf("afterwards: %v, %+v", err, d.Stats())
	}
}

const lookKernel = "in 0 : float32\nin 1 : int32\nout 2 : float32\n%0 = load 1 : int32\n%1 = loadat 0 error %0 : float32\nstore 2 %1"

// TestIndexFaults: the error names the smallest index of the first failing launch, and a Run waits
// only if an index may be out of range.
func TestIndexFaults(t *testing.T) {
	d, f := open(t, runtime.Config{})
	l := launch(t, d, lookKernel, 1, 100)
	l.Args[0].Stride[0], l.Args[0].IndexStride, l.Args[0].IndexSize = 0, 1, 100
	other := *l
	other.Args = slices.Clone(l.Args)
	other.Args[2] = launch(t, d, lookKernel, 1, 100).Args[2]
	tell := func(index ...int32) { // by dispatch; none if it is inside
		f.afterwards = func(list []Dispatch) {
			for i, x := range index {
				words := list[i].Bind[len(list[i].Bind)-2].Buf.(*fakeBuffer).memory()[8*(i+1):]
				if x < 0 || x >= 100 {
					binary.LittleEndian.PutUint32(words, 1)
					binary.LittleEndian.PutUint32(words[4:], uint32(x)^0x7fffffff)
				}
			}
		}
	}
	for _, c := range []struct {
		index []int32
		want  string
	}{{[]int32{5, 6}, ""}, {[]int32{-3, 200}, "0 -3"}, {[]int32{5, 200}, "1 200"}} {
		tell(c.index...)
		got, err := "", d.Run([]runtime.Launch{*l, other})
		var le *runtime.LaunchError
		if errors.As(err, &le) {
			got = fmt.Sprint(le.Index, " ", c.index[le.Index])
			if !strings.Contains(err.Error(), fmt.Sprint(c.index[le.Index])) {
				t.Errorf("%v: %v", c.index, err)
			}
		} else if err != nil {
			t.Fatal(err)
		}
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.index, got, c.want)
		}
	}
	if s := d.Stats(); s.Waits != 3 {
		t.Errorf("%d waits of 3 runs", s.Waits)
	}
	f.afterwards = nil
	ranOn(t, d, copyKernel)
	if s := d.Stats(); s.Waits != 3 {
		t.Error("waited where no index may be at fault")
	}
}

// TestRunsBesideAWait: a Run that waits for its indices delays no other, and two of them have
// separate words.
func TestRunsBesideAWait(t *testing.T) {
	d, f := open(t, runtime.Config{})
	l := launch(t, d, lookKernel, 1, 100)
	l.Args[0].Stride[0], l.Args[0].IndexStride, l.Args[0].IndexSize = 0, 1, 100
	arrived, opened := make(chan bool, 2), make(chan bool)
	f.reading = func() { arrived <- true; <-opened }
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if err := d.Run([]runtime.Launch{*l}); err != nil {
				t.Error(err)
			}
		})
	}
	soon(t, "the second of two", func() { <-arrived; <-arrived })
	soon(t, "a Run", func() { ranOn(t, d, copyKernel) })
	words := func(i int) Buffer { x := f.submitted[i][0].Bind; return x[len(x)-2].Buf }
	if words(0) == words(1) {
		t.Error("two Runs under way have their words in common")
	}
	close(opened)
	group.Wait()
	buffers := f.buffers
	if err := d.Run([]runtime.Launch{*l}); err != nil || f.buffers != buffers {
		t.Errorf("%v, %d buffers more", err, f.buffers-buffers)
	}
}

// TestTurns: each turn is offered for some launch, and changes its shader.
func TestTurns(t *testing.T) {
	testhook.SetChoice(0)
	defer testhook.SetChoice(-1)
	d, f := open(t, runtime.Config{})
	dot := launch(t, d, "in 0 : float32\nin 1 : float32\nout 2 : float32 row\n%0 = load 0 : float32\n%1 = load 1 : float32\n%2 = dot %0 %1 : float32\nstore 2 %2", 2, 200, 100, 50)
	dot.Args[0].Stride, dot.Args[1].Stride = [runtime.MaxRank]int64{50, 0, 1}, [runtime.MaxRank]int64{0, 50, 1}
	du, fu := withUnits(t, "DiscreteGPU", spirv.Dialect, true, runtime.Config{})
	halves := launch(t, du, productText("float16"), 2, 200, 100, 50)
	halves.Args[0].Stride, halves.Args[1].Stride = dot.Args[0].Stride, dot.Args[1].Stride
	offered := map[string]bool{}
	for _, l := range []*runtime.Launch{launch(t, d, copyKernel, 1, 1000), dot, halves} {
		d, f, seen := d, f, map[string]bool{}
		if l == halves {
			d, f = du, fu
		}
		for _, c := range d.Choices(l).List {
			offered[c.Name] = true
			l.Choice = c.Code
			if err := d.Run([]runtime.Launch{*l}); err != nil {
				t.Fatal(err)
			}
			last := f.submitted[len(f.submitted)-1]
			seen[last[0].Pipe.(*fakePipeline).source] = true
		}
		if n := len(d.Choices(l).List); n < 2 || len(seen) < n-1 { // one may be the default
			t.Errorf("%d shaders by %d choices", len(seen), n)
		}
		l.Choice = uint64(len(turns) + 1)
		if err := d.Run([]runtime.Launch{*l}); err == nil {
			t.Error("a choice that there is not was followed")
		}
	}
	for _, x := range turns {
		if !offered[x.name] {
			t.Errorf("%s is never offered", x.name)
		}
	}
	if c := d.Choices(launch(t, d, rowtext.Softmax, 1, 70, 256)); len(c.List) > 0 {
		t.Errorf("rows that a workgroup shares have choices: %v", c.List)
	}
}

// TestLongRows: rows that exceed a dispatch take several, through scratch memory that is released.
func TestLongRows(t *testing.T) {
	const sum = "in 0 : float32\nout 1 : float32 row\n%0 = load 0 : float32\n%1 = sum %0 : float32\nstore 1 %1"
	d, f := open(t, runtime.Config{})
	for name, c := range map[string]struct {
		kernel string
		dims   []int64
		least  int
	}{
		"a sum": {sum, []int64{1, 3 * rowSteps}, 2}, "a short one": {sum, []int64{1, 100}, 1},
		"softmax": {rowtext.Softmax, []int64{2, 1 << 18}, 3},
		"a sort":  {"in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\n%1 = sort %0 : float32\nstore 1 %1", []int64{2, 5000}, 6},
	} {
		l := launch(t, d, c.kernel, 1, c.dims...)
		live := d.Stats().AllocBytes
		if err := d.Run([]runtime.Launch{*l}); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		n := len(f.submitted[len(f.submitted)-1])
		if n < c.least || c.least == 1 && n != 1 {
			t.Errorf("%s: %d dispatches", name, n)
		}
		if d.Stats().AllocBytes != live {
			t.Errorf("%s: scratch memory is left", name)
		}
	}
}

// TestWordsAreSentOnce: a loop's words are written to the device the first time only.
func TestWordsAreSentOnce(t *testing.T) {
	f := newFake()
	d := New("fake", f, wgsl.Dialect, runtime.Config{})
	list := make([]*runtime.Launch, 9)
	for i := range list {
		list[i] = launch(t, d, negKernel, 1, int64(8+i))
	}
	writes := func(ls ...*runtime.Launch) int {
		before := f.written
		for _, l := range ls {
			if err := d.Run([]runtime.Launch{*l}); err != nil {
				t.Fatal(err)
			}
		}
		return f.written - before
	}
	if n := writes(list[0], list[1], list[0], list[1], list[0]); n != 2 {
		t.Errorf("words of two launches were written %d times", n)
	}
	if n := writes(list...); n != 7 {
		t.Errorf("of nine launches, two of which had run, words were written %d times", n)
	}
	if n := writes(list[0]); n != 1 { // only a limited number is kept
		t.Errorf("words given up were written %d times", n)
	}
}

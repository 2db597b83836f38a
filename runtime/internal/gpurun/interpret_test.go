package gpurun

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// hostBuffer is memory for the interpreter. Elements of 32 bits, and narrow ones, have the device's
// layout.
type hostBuffer struct{ data []byte }

func newHost(bytes int64) *hostBuffer { return &hostBuffer{make([]byte, (bytes+15)&^15)} }

func (b *hostBuffer) Bytes() int64 { return int64(len(b.data)) }

// bytes returns the bytes of a window.
func (w *window) bytes() []byte { return w.buf.(*hostBuffer).data[w.off : w.off+w.size] }

// words are a window's words, for reading and writing.
type words []byte

func (w words) at(i uint32) uint32     { return binary.LittleEndian.Uint32(w[4*i:]) }
func (w words) set(i uint32, x uint32) { binary.LittleEndian.PutUint32(w[4*i:], x) }

// element is the place of an element of size bytes in a window.
func (w words) element(i, size uint32) []byte { return w[i*size:][:size] }

// onHost is a splitter whose pieces the interpreter runs, and counts.
func onHost(lim limits, pieces *int) *splitter {
	s := &splitter{limits: lim, scratch: func(n int64) (runtime.Buffer, error) { return newHost(n), nil }}
	s.build = func(k *codegen.Kernel) (runtime.Program, *codegen.Kernel, error) {
		if err := k.Verify(); err != nil {
			return nil, nil, fmt.Errorf("%w\n%s", err, k)
		}
		ready, err := shader.Prepare(k)
		return &program{kernel: k, ready: ready}, ready, err
	}
	s.emit = func(k *codegen.Kernel, p *piece) error {
		*pieces++
		for _, w := range p.windows {
			if w.size > lim.binding || w.off%lim.align != 0 {
				return fmt.Errorf("a window of %d bytes at %d", w.size, w.off)
			}
		}
		if len(p.windows) > lim.bindings || points(p.launch.Dims[:p.launch.Rank]) > lim.threads && dotOf(k) < 0 {
			return fmt.Errorf("%d windows, %v points", len(p.windows), p.launch.Dims[:p.launch.Rank])
		}
		if p.checks {
			return nil
		}
		l := &p.launch
		args := make([]codegen.HostArg, len(l.Args))
		for i := range args {
			args[i].Access = l.Args[i]
			if w := p.binding[i]; w >= 0 {
				first, last := &p.windows[w], &p.windows[w+p.parts[i]-1]
				args[i].Data = first.buf.(*hostBuffer).data[first.off : last.off+last.size]
				if p.skip[i] {
					args[i].Data = slices.Clone(args[i].Data)
				}
			}
		}
		if at := k.Scatter(); at != ir.None && p.slots != nil { // faults were reported before
			in := k.Body[at]
			sub := *k
			sub.Body = slices.Clone(k.Body)
			sub.Body[at].Imm = codegen.ScatterImm(int(uint32(in.Imm)), ir.IndexDrop, codegen.CombineOf(in))
			k = &sub
		}
		return codegen.Interpret(k, l.Dims[:l.Rank], l.Kept, args, l.Scalars)
	}
	s.sorter = func(x sortDispatch) error {
		*pieces++
		sortOnHost(&x)
		return nil
	}
	return s
}

// sortOnHost does the work of a sort step's shader.
func sortOnHost(x *sortDispatch) {
	w := make([]words, len(x.windows))
	for i := range x.windows {
		w[i] = x.windows[i].bytes()
	}
	p, size := x.words, cmp.Or(uint32(x.Size), wordSize)
	exchange := func(keys, at words, i, j, first, size uint32) {
		a := 2*i - i&(j-1) + first
		b := a + j
		later := keys.at(a) > keys.at(b) || keys.at(a) == keys.at(b) && at.at(a) > at.at(b)
		if later == (a&(p.Padded-1)&size == 0) {
			for _, m := range []words{keys, at} {
				x, y := m.at(a), m.at(b)
				m.set(a, y)
				m.set(b, x)
			}
		}
	}
	for t := range uint32(x.threads) {
		switch x.Step {
		case shader.SortKeys:
			i, row := t&(p.Padded-1), t/p.Padded
			key := uint32(math.MaxUint32)
			if i < p.Row {
				key = uint32(ir.SortKey(x.DT, ir.LoadBits(x.DT, w[0].element(p.Elements+row*p.Row+i, size)), x.Descending))
			}
			w[1].set(t, key)
			w[2].set(t, i)
		case shader.SortLocal:
			for s := p.From; s <= p.To; s *= 2 {
				for j := min(s, shader.SortBlock) / 2; j > 0; j /= 2 {
					for i := range uint32(shader.SortBlock / 2) {
						exchange(w[0], w[1], i, j, t*shader.SortBlock, s)
					}
				}
			}
		case shader.SortWide:
			exchange(w[0], w[1], t, p.Distance, 0, p.From)
		case shader.SortTake:
			row := t / p.Row
			copy(w[2].element(p.Result+t, size), w[0].element(p.Elements+row*p.Row+w[1].at(row*p.Padded+t%p.Row), size))
		case shader.SortPlace:
			w[1].set(p.Result+t, w[0].at(t/p.Row*p.Padded+t%p.Row))
		}
	}
}

// row is a kernel of one row op of dt with a result of out.
func row(op, dt, out, kind string) string {
	return fmt.Sprintf("in 0 : %s\nout 1 : %s%s\n%%0 = load 0 : %s\n%%1 = %s %%0 : %s\nstore 1 %%1", dt, out, kind, dt, op, out)
}

const (
	dotText  = "in 0 : float32\nin 1 : float32\nin 2 : float32 row\nout 3 : float32 row\n%0 = load 0 : float32\n%1 = load 1 : float32\n%2 = dot %0 %1 : float32\n%3 = load 2 : float32\n%4 = add %2 %3 : float32\nstore 3 %4"
	twoText  = "in 0 : float32\nout 1 : float32 row\nout 2 : int32 row\nout 3 : float32\n%0 = load 0 : float32\n%1 = sum %0 : float32\n%2 = argmin %0 : int32\n%3 = sub %0 %1 : float32\nstore 1 %1\nstore 2 %2\nstore 3 %3"
	foldText = "in 0 : float32\nout 1 : float32 row\nout 2 : int32 row\n%0 = load 0 : float32\n%1 = sum %0 : float32\n%2 = argmin %0 : int32\nstore 1 %1\nstore 2 %2"
	lookText = "in 0 : int32\nin 1 : int32\nout 2 : int32\n%0 = load 1 : int32\n%1 = loadat 0 clamp %0 : int32\nstore 2 %1"
	putText  = "in 0 : int32 row\nin 1 : int32\nin 2 : int32\nout 3 : int32 row\n%0 = load 1 : int32\n%1 = load 2 : int32\n%2 = scatter 0 error add %0 %1 : int32\nstore 3 %2"
)

// TestPiecesTogether: the pieces of a launch compute the launch's result, whole and under limits
// for few rows.
func TestPiecesTogether(t *testing.T) {
	whole := limits{binding: 1 << 27, align: 256, bindings: 16, threads: maxThreads}
	small := limits{binding: 1 << 13, align: 64, bindings: 8, threads: 1 << 12}
	narrow := ir.SetWhere(func(dt ir.DType) bool { return dt.Size() < wordSize })
	whole.narrow, small.narrow = narrow, narrow
	for name, c := range map[string]struct {
		kernel string
		kept   int
		dims   []int64
		index  int64 // number of elements in which operand 0 is looked up, or to which it is scattered
		small  bool  // also under small limits
		pieces int   // least number of pieces without limits
	}{
		"elements":        {copyKernel, 2, []int64{100, 130}, 0, true, 1},
		"a sum":           {row("sum", "float32", "float32", " row"), 1, []int64{3, 50000}, 0, true, 2},
		"a short sum":     {row("sum", "float32", "float32", " row"), 1, []int64{100, 40}, 0, true, 1},
		"of columns":      {row("max", "float32", "float32", " row"), 2, []int64{3, 70, 3000}, 0, true, 1},
		"a position":      {row("argmax", "float32", "int32", " row"), 1, []int64{2, 40000}, 0, true, 3},
		"two folds":       {foldText, 1, []int64{3, 40000}, 0, true, 4},
		"two and points":  {twoText, 1, []int64{3, 9000}, 0, true, 1},
		"a scan":          {row("cumsum", "int32", "int32", ""), 1, []int64{2, 100000}, 0, true, 2},
		"softmax":         {rowtext.Softmax, 1, []int64{2, 1 << 16}, 0, false, 3},
		"a short softmax": {rowtext.Softmax, 1, []int64{60, 100}, 0, true, 1},
		"norm":            {rowtext.Norm, 1, []int64{2, 50000}, 0, false, 3},
		"a short norm":    {rowtext.Norm, 1, []int64{60, 100}, 0, true, 1},
		"dot":             {dotText, 2, []int64{90, 60, 20}, 0, true, 1},
		"a thin dot":      {dotText, 2, []int64{3, 40, 50}, 0, true, 1},
		"a long dot":      {dotText, 2, []int64{16, 16, 5000}, 0, false, 4},
		"sort":            {row("sort", "float32", "float32", ""), 1, []int64{3, 3000}, 0, false, 8},
		"argsort":         {row("argsort", "int32", "int32", ""), 1, []int64{30, 500}, 0, true, 4},
		"a table":         {lookText, 1, []int64{3000}, 5000, true, 1},
		"a scatter":       {putText, 1, []int64{4, 2000}, 3000, true, 3},

		"narrow elements": {strings.ReplaceAll(copyKernel, "float32", "int16"), 2, []int64{100, 130}, 0, true, 1},
		"narrow floats":   {row("max", "bfloat16", "bfloat16", " row"), 1, []int64{3, 50000}, 0, true, 1},
		"a narrow scan":   {row("cumsum", "uint8", "uint8", ""), 1, []int64{2, 100000}, 0, true, 2},
		"a narrow place":  {row("argmin", "int8", "int32", " row"), 1, []int64{2, 40000}, 0, true, 3},
		"a narrow sort":   {row("sort", "int16", "int16", ""), 1, []int64{3, 3000}, 0, false, 8},
		"sorted halves":   {row("argsort", "float16", "int32", ""), 1, []int64{30, 500}, 0, true, 4},
		"a narrow table":  {strings.Replace(strings.ReplaceAll(lookText, "int32", "int8"), "in 1 : int8\nout 2 : int8\n%0 = load 1 : int8", "in 1 : int32\nout 2 : int8\n%0 = load 1 : int32", 1), 1, []int64{3000}, 40000, true, 1},
		"narrow scatter":  {"in 0 : int16 row\nin 1 : int32\nin 2 : int16\nout 3 : int16 row\n%0 = load 1 : int32\n%1 = load 2 : int16\n%2 = scatter 0 error add %0 %1 : int16\nstore 3 %2", 1, []int64{4, 2000}, 9000, true, 3},
	} {
		for _, lim := range []limits{whole, small} {
			if lim == small && !c.small {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", name, lim.threads), func(t *testing.T) {
				n := 0
				runOnHost(t, onHost(lim, &n), c.kernel, c.kept, c.dims, c.index)
				if lim == whole && (n < c.pieces || c.pieces == 1 && n > 3) || lim == small && n < 2 {
					t.Errorf("%d pieces", n)
				}
			})
		}
	}
}

// runOnHost compares a launch in pieces with the whole launch.
func runOnHost(t *testing.T, s *splitter, text string, kept int, dims []int64, index int64) {
	t.Helper()
	k := parse(t, text)
	rng := rand.New(rand.NewPCG(uint64(len(text)), uint64(dims[0])))
	prog, ready, err := s.build(k)
	if err != nil {
		t.Fatal(err)
	}
	l := &runtime.Launch{Prog: prog, Rank: len(dims), Kept: kept}
	copy(l.Dims[:], dims)
	for range k.Scalars {
		l.Scalars = append(l.Scalars, ir.FloatBits(ir.Float32, float64(dims[len(dims)-1])))
	}
	dot := dotOf(k) >= 0
	for i, o := range k.Operands {
		a := runtime.Access{}
		n := int64(1)
		for d := len(dims) - 1; d >= 0; d-- {
			still := o.Row && d >= kept || dot && (i == 0 && d == 1 || i == 1 && d == 0)
			if !still {
				a.Stride[d] = n
				n *= dims[d]
			}
		}
		scattered := k.Scatter() != ir.None
		if index > 0 && (i == 0 || scattered && i == 3) {
			a = runtime.Access{IndexStride: 1, IndexSize: index}
			n = index
			if scattered {
				a.Stride[0] = index
				n *= dims[0]
			}
		}
		size := o.DT.Size()
		b := newHost(n * int64(size))
		for at := 0; o.Kind == codegen.Input && at < int(n)*size; at += size {
			v := rng.Uint64N(uint64(max(index, 2000)))
			if o.DT.IsFloat() {
				v = ir.FloatBits(o.DT, rng.NormFloat64())
			}
			ir.StoreBits(o.DT, b.data[at:], v)
		}
		a.Buf = b
		l.Args = append(l.Args, a)
	}
	want := make([]codegen.HostArg, len(l.Args))
	for i, a := range l.Args {
		want[i] = codegen.HostArg{Access: a, Data: slices.Clone(a.Buf.(*hostBuffer).data)}
	}
	if err := codegen.Interpret(k, dims, kept, want, l.Scalars); err != nil {
		t.Fatal(err)
	}
	if err := s.launch(ready, l); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for i, o := range k.Operands {
		got := l.Args[i].Buf.(*hostBuffer).data
		size := o.DT.Size()
		for at := 0; o.Kind == codegen.Output && at+size <= len(got); at += size {
			g, w := ir.LoadBits(o.DT, got[at:]), ir.LoadBits(o.DT, want[i].Data[at:])
			near := false
			if o.DT.IsFloat() {
				x, y := ir.BitsFloat(o.DT, g), ir.BitsFloat(o.DT, w)
				near = math.Abs(x-y) <= 1e-3+1e-3*math.Abs(y)
			}
			if g != w && !near {
				t.Fatalf("operand %d, element %d is %#x, want %#x\n%s", i, at/size, g, w, strings.TrimSpace(text))
			}
		}
	}
}

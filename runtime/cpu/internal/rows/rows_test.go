package rows

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/fold"
	"github.com/millrace-go/millrace/runtime/cpu/internal/interp"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
	"github.com/millrace-go/millrace/runtime/cpu/internal/threads"
)

// interpreter is a Host that interprets phases.
type interpreter struct {
	phases []*interp.Program
	arenas [5]memory.Arena // the last one is that of the launch as a whole
	rooms  [4]interp.Room
	args   [4][2]operands.Args
	opened [4]bool
	most   int64  // bytes that may be reserved at a time
	rec    *steps // nil: nothing is recorded
}

func (h *interpreter) Reserve(thread int, n int64) unsafe.Pointer {
	if n > h.most {
		return nil
	}
	return h.arenas[(thread+len(h.arenas))%len(h.arenas)].Reserve(n)
}

func (h *interpreter) Open(thread int) (first, second operands.Evaluator) {
	h.opened[thread] = true
	return evaluator{h, thread, 0}, evaluator{h, thread, 1}
}

func (h *interpreter) Close(thread int)   { h.opened[thread] = false }
func (h *interpreter) Code(int, int) Code { return nil }

type evaluator struct {
	h         *interpreter
	who, slot int
}

func (e evaluator) Args() *operands.Args { return &e.h.args[e.who][e.slot] }

func (e evaluator) Eval(phase int, begin, end int64) {
	e.h.phases[phase].Run(e.Args(), &e.h.rooms[e.who], begin, end)
	if e.h.rec != nil {
		a := *e.Args()
		a.Ops, a.Bufs = slices.Clone(a.Ops), slices.Clone(a.Bufs)
		e.h.rec.Do(func(*operands.Pointers) { e.h.phases[phase].Run(&a, &e.h.rooms[e.who], begin, end) })
	}
}

// steps is a Recorder.
type steps struct {
	list []func()
	lost bool
}

func (s *steps) Region(unsafe.Pointer, int64) {}
func (s *steps) Stop()                        { panic("rows have no step that may stop a launch") }
func (s *steps) Lose()                        { s.lost = true }

func (s *steps) Do(f func(p *operands.Pointers), pointers ...operands.Pointer) {
	var p operands.Pointers
	for i := range pointers {
		p[i] = pointers[i].P
	}
	s.list = append(s.list, func() { f(&p) })
}

func (s *steps) Check(func(*operands.Pointers, *operands.IndexFault), ...operands.Pointer) {
	panic("no row op has indices")
}

// bind returns the launch of a kernel, and a Host for it. By columns, the last kept dim is walked
// innermost.
func bind(t *testing.T, k *codegen.Kernel, h *kernels.Launch, data [][]byte, cols bool) (*Launch, *interpreter) {
	t.Helper()
	lowered, err := interp.Lower(k, false)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := NewPlan(codegen.Phases(lowered, codegen.PhaseOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	l := &Launch{Plan: plan, Folds: fold.ByGo(k.Denormals), Operands: k.Operands, Kept: h.Kept, Outputs: 1, Points: 1, Cols: cols, Look: -1}
	host := &interpreter{most: 1 << 30}
	for _, ph := range plan.Phases {
		p, err := interp.Compile(ph.Kernel, false)
		if err != nil {
			t.Fatal(err)
		}
		host.phases = append(host.phases, p)
		l.Scratch = max(l.Scratch, p.Scratch())
	}
	l.Args = operands.Args{Rank: len(h.Dims), Scalars: h.Scalars}
	var order []int
	for d, n := range h.Dims {
		l.Points *= n
		if d < h.Kept {
			l.Outputs *= n
		}
		if !cols || d != h.Kept-1 {
			order = append(order, d)
		}
	}
	if cols {
		order = append(order, h.Kept-1)
	}
	for i := range h.Args {
		a := &h.Args[i].Access
		o := operands.Operand{Offset: a.Offset, Stages: a.Stages, Base: unsafe.Pointer(unsafe.SliceData(data[i]))}
		for d, dim := range order {
			o.Stride[d], l.Args.Dims[d] = a.Stride[dim], h.Dims[dim]
		}
		l.Args.Ops = append(l.Args.Ops, o)
	}
	return l, host
}

// contents returns copies of a launch's data.
func contents(h *kernels.Launch) (data [][]byte) {
	for i := range h.Args {
		data = append(data, bytes.Clone(h.Args[i].Data))
	}
	return data
}

// TestJob compares row kernels with the oracle: as rows, as columns and split, on one thread and
// several. Recorded work does the same again.
func TestJob(t *testing.T) {
	pool := threads.NewPool(4)
	defer pool.Close()
	var j Job
	recorded := 0
	for name, text := range rowtext.All {
		k, err := codegen.Parse(strings.TrimPrefix(text, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []struct {
			dims []int64
			kept int
		}{
			{[]int64{1}, 0}, {[]int64{65}, 0}, {[]int64{9000}, 0}, {[]int64{5, 7}, 1}, {[]int64{50, 65}, 1}, {[]int64{3, 4100}, 1},
			{[]int64{300, 3}, 1}, {[]int64{3, 2, 9}, 1}, {[]int64{2, 17, 30}, 2}, {[]int64{3, 40, 7, 5}, 2},
		} {
			h := kernels.NewLaunch(rand.New(rand.NewPCG(3, uint64(len(text)))), k, s.dims, s.kept, kernels.Dense)
			args, want := slices.Clone(h.Args), contents(h)
			for i := range args {
				args[i].Data = want[i]
			}
			if err := codegen.Interpret(k, s.dims, s.kept, args, h.Scalars); err != nil {
				t.Fatal(err)
			}
			for way := range 8 {
				cols, split, most := way%2 == 1, way/2%2 == 1, []int64{1, 4}[way/4]
				data := contents(h)
				l, host := bind(t, k, h, data, cols && s.kept > 0 && name != "sort")
				l.Threads, l.Tile = most, min(l.Outputs, 20)
				if l.Cols {
					l.Tile = min(s.dims[s.kept-1], 16)
				}
				if l.Split = split && name != "sort" && name != "scan" && name != "mixed"; l.Split && !l.Cols {
					l.Tile = 1
				}
				if !l.Split && most == 1 {
					host.rec = &steps{}
					l.Recorder = host.rec
				}
				what := fmt.Sprintf("%s, %v, %d kept, way %d", name, s.dims, s.kept, way)
				if j.Launch = *l; !j.Run(host, pool) {
					t.Fatalf("%s: memory was refused", what)
				}
				same(t, what, k, data, want)
				if host.rec != nil && !host.rec.lost {
					recorded++
					for i, o := range k.Operands {
						if o.Kind == codegen.Output {
							copy(data[i], h.Args[i].Data)
						}
					}
					for _, f := range host.rec.list {
						f()
					}
					same(t, what+", replayed", k, data, want)
				}
				if host.opened != [4]bool{} {
					t.Fatalf("%s: an evaluator is still open", what)
				}
				for i := range host.arenas {
					host.arenas[i].Free()
				}
			}
		}
	}
	if recorded == 0 {
		t.Error("nothing was recorded")
	}
}

func same(t *testing.T, what string, k *codegen.Kernel, got, want [][]byte) {
	t.Helper()
	for i, o := range k.Operands {
		if err := kernels.Same(o.DT, got[i], want[i]); err != nil {
			t.Fatalf("%s: operand %d: %v", what, i, err)
		}
	}
}

// TestRefused checks that refused memory is reported, of threads and of the launch as a whole.
func TestRefused(t *testing.T) {
	pool := threads.NewPool(4)
	defer pool.Close()
	k, err := codegen.Parse(strings.TrimPrefix(rowtext.Softmax, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	h := kernels.NewLaunch(rand.New(rand.NewPCG(3, 3)), k, []int64{4, 5000}, 1, kernels.Dense)
	var j Job
	for _, split := range []bool{false, true} {
		data := contents(h)
		l, host := bind(t, k, h, data, false)
		l.Threads, l.Tile, l.Split, host.most = 4, 1, split, 1000
		if j.Launch = *l; j.Run(host, pool) {
			t.Errorf("split %v: a launch without memory ran", split)
		}
		for i := range data {
			if !bytes.Equal(data[i], h.Args[i].Data) {
				t.Errorf("split %v: operand %d was written", split, i)
			}
		}
	}
}

// TestPlan checks that a phase with too many row ops is refused.
func TestPlan(t *testing.T) {
	var b ir.Builder
	x := b.Emit(ir.Load, ir.Float32, 0)
	k := &codegen.Kernel{Operands: []codegen.Operand{{Kind: codegen.Input, DT: ir.Float32}}}
	for i := range MaxOps + 1 {
		sum := b.Emit(ir.Sum, ir.Float32, 0, b.Emit(ir.Mul, ir.Float32, 0, x, b.Emit(ir.Const, ir.Float32, ir.FloatBits(ir.Float32, float64(i)))))
		k.Operands = append(k.Operands, codegen.Operand{Kind: codegen.Output, DT: ir.Float32, Row: true})
		k.Stores = append(k.Stores, codegen.Store{Operand: i + 1, Value: sum})
	}
	k.Body = b.Code
	if _, err := NewPlan(codegen.Phases(k, codegen.PhaseOptions{})); err == nil {
		t.Errorf("a phase of %d row ops is accepted", MaxOps+1)
	}
}

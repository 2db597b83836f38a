package native_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/codegen/native/amd64"
	"github.com/millrace-go/millrace/codegen/native/arm64"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/internal/testing/kernels"
)

// runnable are the targets that this processor has.
func runnable() []*native.ISA {
	switch machine.Level() {
	case machine.AVX512:
		return []*native.ISA{amd64.AVX512, amd64.AVX2}
	case machine.AVX2:
		return []*native.ISA{amd64.AVX2}
	case machine.NEON:
		return []*native.ISA{arm64.NEON}
	}
	return nil
}

// launch is memory for a kernel, of rows of n points, each operand in its class.
type launch struct {
	k       *codegen.Kernel
	v       native.Variant
	rows, n int
	args    []codegen.HostArg
	scalars []uint64
}

// steps are the elements from a point to the next, by class.
var steps = map[codegen.AccessClass]int64{codegen.Contiguous: 1, codegen.Splat: 0, codegen.Strided: 3}

// indexOffset is the first position of an index operand.
var indexOffset = func(rng *rand.Rand) int64 { return rng.Int64N(1<<34) - 5 }

func newLaunch(rng *rand.Rand, k *codegen.Kernel, v native.Variant, rows, n int) *launch {
	l := &launch{k: k, v: v, rows: rows, n: n}
	for i, o := range k.Operands {
		a := codegen.HostArg{}
		step := steps[v.Class[i]]
		row := max(step*int64(n), 1) + int64(rng.IntN(3))
		a.Stride[0], a.Stride[1], a.Offset = row, step, 3
		if step > 1 && o.Kind == codegen.Input && rng.IntN(2) == 0 {
			a.Stride[1], a.Offset = -step, a.Offset+step*int64(n)
		}
		count := row*int64(rows) + 8
		if o.Kind == codegen.Index {
			a.Offset = indexOffset(rng)
			l.args = append(l.args, a)
			continue
		}
		size := o.DT.Size()
		a.Data = make([]byte, count*int64(size))
		for e := range count {
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], kernels.Value(rng, o.DT))
			copy(a.Data[e*int64(size):(e+1)*int64(size)], b[:])
		}
		l.args = append(l.args, a)
	}
	for _, dt := range k.Scalars {
		l.scalars = append(l.scalars, kernels.Value(rng, dt))
	}
	return l
}

func (l *launch) outputs() (out [][]byte) {
	for i, o := range l.k.Operands {
		if o.Kind == codegen.Output {
			out = append(out, append([]byte(nil), l.args[i].Data...))
		}
	}
	return out
}

// frameFor makes the memory of a frame, and returns its words and its address.
func frameFor(f *native.Func) (words []uint64, p unsafe.Pointer) {
	words = make([]uint64, f.Bytes/8+8)
	p = unsafe.Pointer(unsafe.SliceData(words))
	skip := -uintptr(p) & 63 / 8
	return words[skip:], unsafe.Add(p, skip*8)
}

// run calls code for the launch.
func (l *launch) run(f *native.Func, code *machine.Code) {
	words, p := frameFor(f)
	words[native.FramePoints/8], words[native.FrameRows/8] = uint64(l.n), uint64(l.rows)
	for i, o := range l.k.Operands {
		a := &l.args[i]
		w := words[(native.FrameArgs+i*native.OperandBytes)/8:]
		size := int64(1)
		if o.Kind != codegen.Index {
			size = int64(o.DT.Size())
			w[0] = uint64(uintptr(unsafe.Pointer(&a.Data[a.Offset*size])))
		} else {
			w[0] = uint64(a.Offset)
		}
		w[native.Step/8], w[native.RowStep/8] = uint64(a.Stride[1]*size), uint64(a.Stride[0]*size)
	}
	copy(words[f.Scalars/8:], l.scalars)
	machine.Call(code.Addr(0), p, machine.KeepMXCSR)
	runtime.KeepAlive(l)
	runtime.KeepAlive(words)
}

// check compares code with the interpreter.
func check(t *testing.T, rng *rand.Rand, k *codegen.Kernel, v native.Variant, isa *native.ISA, rows, n int) error {
	t.Helper()
	f, err := native.Compile(k, v, isa, false)
	if err != nil {
		return err
	}
	code, err := machine.Map(f.Code)
	if err != nil {
		t.Fatal(err)
	}
	defer code.Free()
	l := newLaunch(rng, k, v, rows, n)
	before := make([][]byte, len(l.args))
	for i := range l.args {
		before[i] = append([]byte(nil), l.args[i].Data...)
	}
	l.run(f, code)
	got := l.outputs()
	for i := range l.args {
		copy(l.args[i].Data, before[i])
	}
	if err := codegen.Interpret(k, []int64{int64(rows), int64(n)}, 2, l.args, l.scalars); err != nil {
		t.Fatal(err)
	}
	want, j := l.outputs(), 0
	for i, o := range k.Operands {
		if o.Kind != codegen.Output {
			continue
		}
		if err := kernels.Same(o.DT, got[j], want[j]); err != nil {
			for _, s := range k.Stores {
				if s.Operand == i {
					return fmt.Errorf("operand %d, %s, %dx%d: %w", i, codegen.FormatBody(k.Body[s.Value : s.Value+1])[3:], rows, n, err)
				}
			}
		}
		j++
	}
	return nil
}

func all(k *codegen.Kernel, c codegen.AccessClass) native.Variant {
	v := native.Variant{Class: make([]codegen.AccessClass, len(k.Operands))}
	for i, o := range k.Operands {
		if v.Class[i] = c; c == codegen.Splat && o.Kind == codegen.Output {
			v.Class[i] = codegen.Contiguous
		}
	}
	return v
}

// alone is a kernel with one of another's results.
func alone(k *codegen.Kernel, store int) *codegen.Kernel {
	one := &codegen.Kernel{Scalars: k.Scalars, Body: k.Body}
	for i, o := range k.Operands {
		if o.Kind != codegen.Output || i == k.Stores[store].Operand {
			one.Operands = append(one.Operands, o)
		}
	}
	one.Stores = []codegen.Store{{Operand: len(one.Operands) - 1, Value: k.Stores[store].Value}}
	return one
}

// TestEveryOp compares every op on every dtype with the interpreter, each in a kernel of its own,
// in rows of several lengths and in every class.
func TestEveryOp(t *testing.T) {
	for _, isa := range runnable() {
		for _, dt := range kernels.DTypes {
			t.Run(isa.Name+"/"+dt.String(), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(dt), 7))
				every := kernels.EveryOp(dt, nil)
				failed := 0
				for s := range every.Stores {
					k, err := codegen.Lower(alone(every, s))
					if err != nil {
						t.Fatal(err)
					}
					for _, c := range []codegen.AccessClass{codegen.Contiguous, codegen.Splat, codegen.Strided} {
						n := []int{1, 3, 16, 37, 200}[rng.IntN(5)]
						if err := check(t, rng, k, all(k, c), isa, 1+rng.IntN(3), n); err != nil {
							in := every.Body[every.Stores[s].Value]
							t.Errorf("%v to %v, %v: %v", in.Op, in.DT, c, err)
							if failed++; failed > 6 {
								t.Fatal("and more")
							}
						}
					}
				}
			})
		}
	}
}

// TestRandomKernels compares kernels of many ops.
func TestRandomKernels(t *testing.T) {
	n := 300
	if testing.Short() {
		n = 60
	}
	for _, isa := range runnable() {
		for seed := range n {
			rng := rand.New(rand.NewPCG(uint64(seed), 3))
			k, err := codegen.Lower(kernels.Random(rng, 4+rng.IntN(40), 0))
			if err != nil {
				t.Fatal(err)
			}
			v := native.Variant{}
			for _, o := range k.Operands {
				c := codegen.AccessClass(rng.IntN(3))
				if o.Kind == codegen.Output && c == codegen.Splat {
					c = codegen.Contiguous
				}
				v.Class = append(v.Class, c)
			}
			if err := check(t, rng, k, v, isa, 1+rng.IntN(4), 1+rng.IntN(150)); err != nil {
				t.Errorf("%s, seed %d: %v\n%v", isa.Name, seed, err, k)
				if os.Getenv("MILLRACE_TEXT") != "" {
					f, _ := native.Compile(k, v, isa, true)
					_ = os.WriteFile(filepath.Join(os.TempDir(), "native.s"), []byte(f.Text()), 0o600)
				}
				return
			}
		}
	}
}

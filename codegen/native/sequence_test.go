package native_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/codegen/native/amd64"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
)

// sequenced is a sequence and its memory.
type sequenced struct {
	list    []native.Launch
	dts     []ir.DType // of buffers
	data    [][]byte
	private []bool
}

const sequenceElems = 70

// newSequence makes a list of launches of some of the kernels, on buffers that other launches read
// and write.
func newSequence(rng *rand.Rand, ks []*codegen.Kernel, n int) *sequenced {
	s := &sequenced{}
	for range n {
		k := ks[rng.IntN(len(ks))]
		l := native.Launch{Kernel: k}
		if rng.IntN(3) == 0 {
			l.Dims = append(l.Dims, 1+rng.Int64N(3))
		}
		if rng.IntN(5) > 0 {
			l.Dims = append(l.Dims, []int64{1, 1, 2, 3, 4, 7, 8, 9, 16, 17}[rng.IntN(10)])
		}
		taken := map[int]codegen.OperandKind{}
		for _, o := range k.Operands {
			a := native.Arg{Buffer: s.buffer(rng, o, taken), Offset: rng.Int64N(3), Stride: make([]int64, len(l.Dims))}
			for d := len(l.Dims) - 1; d >= 0; d-- {
				if a.Stride[d] = 1; d+1 < len(l.Dims) {
					a.Stride[d] = l.Dims[d+1]
				}
			}
			if o.Kind == codegen.Input && rng.IntN(4) == 0 {
				clear(a.Stride)
			}
			l.Args = append(l.Args, a)
		}
		for _, dt := range k.Scalars {
			l.Scalars = append(l.Scalars, kernels.Value(rng, dt))
		}
		s.list = append(s.list, l)
	}
	return s
}

// buffer chooses a buffer for an operand; a result shares its buffer with no operand of the launch.
func (s *sequenced) buffer(rng *rand.Rand, o codegen.Operand, taken map[int]codegen.OperandKind) int {
	var fits []int
	for b, dt := range s.dts {
		by, is := taken[b]
		if dt == o.DT && (!is || o.Kind == codegen.Input && by == codegen.Input) {
			fits = append(fits, b)
		}
	}
	b := len(s.dts)
	if len(fits) > 3 || len(fits) > 0 && rng.IntN(3) > 0 {
		b = fits[rng.IntN(len(fits))]
	} else {
		s.dts, s.private = append(s.dts, o.DT), append(s.private, rng.IntN(2) == 0)
		data := make([]byte, sequenceElems*o.DT.Size())
		for e := range sequenceElems {
			var bits [8]byte
			binary.LittleEndian.PutUint64(bits[:], kernels.Value(rng, o.DT))
			copy(data[e*o.DT.Size():(e+1)*o.DT.Size()], bits[:])
		}
		s.data = append(s.data, data)
	}
	taken[b] = o.Kind
	return b
}

// interpret runs the sequence so many times, launch by launch, on copies of the memory.
func (s *sequenced) interpret(times int) ([][]byte, error) {
	mem := make([][]byte, len(s.data))
	for i := range mem {
		mem[i] = append([]byte(nil), s.data[i]...)
	}
	for i := range times * len(s.list) {
		l := s.list[i%len(s.list)]
		host := make([]codegen.HostArg, len(l.Args))
		for i, a := range l.Args {
			host[i].Data, host[i].Offset = mem[a.Buffer], a.Offset
			copy(host[i].Stride[:], a.Stride)
		}
		if err := codegen.Interpret(l.Kernel, l.Dims, len(l.Dims), host, l.Scalars); err != nil {
			return nil, err
		}
	}
	return mem, nil
}

// check runs the sequence once, and then several times in one call without private buffers.
func (s *sequenced) check(isa *native.ISA) error {
	if err := s.checkTimes(isa, 1); err != nil {
		return err
	}
	clear(s.private)
	return s.checkTimes(isa, 3)
}

func (s *sequenced) checkTimes(isa *native.ISA, times int) error {
	was := make([][]byte, len(s.data))
	for i := range was {
		was[i] = append([]byte(nil), s.data[i]...)
	}
	defer func() { s.data = was }()
	f, err := native.CompileSequence(s.list, s.private, isa, false)
	if err != nil {
		return err
	}
	code, err := machine.Map(f.Code)
	if err != nil {
		return err
	}
	defer code.Free()
	want, err := s.interpret(times)
	if err != nil {
		return err
	}
	words, p := frameFor(f)
	for i := range s.data {
		words[f.Scalars/8+i] = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(s.data[i]))))
	}
	words[native.FrameRows/8] = uint64(times)
	machine.Call(code.Addr(0), p, machine.KeepMXCSR)
	runtime.KeepAlive(words)
	for i, dt := range s.dts {
		if s.private[i] {
			continue
		}
		if err := kernels.Same(dt, s.data[i], want[i]); err != nil {
			return fmt.Errorf("buffer %d of %v: %w", i, dt, err)
		}
	}
	return nil
}

// sequenceKernels are kernels of one op that may be launches of a sequence.
func sequenceKernels(t *testing.T) (list []*codegen.Kernel) {
	for _, dt := range []ir.DType{ir.Float32, ir.Float64, ir.Int32, ir.Int64, ir.Uint32, ir.Uint64} {
		every := kernels.EveryOp(dt, nil)
		for i := range every.Stores {
			k, err := codegen.Lower(alone(every, i))
			if err != nil {
				t.Fatal(err)
			}
			used := &codegen.Kernel{Scalars: k.Scalars, Denormals: k.Denormals}
			at := make([]int, len(k.Operands))
			ok := true
			for i, o := range k.Operands {
				at[i] = -1
				if (o.Kind == codegen.Output) || reads(k, i) {
					ok = ok && o.Kind != codegen.Index && o.DT.Size() >= 4
					at[i] = len(used.Operands)
					used.Operands = append(used.Operands, o)
				}
			}
			for _, in := range k.Body {
				if in.Op == ir.Load {
					in.Imm = uint64(at[in.Imm])
				}
				used.Body = append(used.Body, in)
			}
			for _, st := range k.Stores {
				used.Stores = append(used.Stores, codegen.Store{Operand: at[st.Operand], Value: st.Value})
			}
			if ok {
				list = append(list, used)
			}
		}
	}
	return list
}

func reads(k *codegen.Kernel, operand int) bool {
	for _, in := range k.Body {
		if (in.Op == ir.Load || in.Op == ir.IndexLo || in.Op == ir.IndexHi) && int(in.Imm) == operand {
			return true
		}
	}
	return false
}

// TestSequences compares random sequences with the interpreter: of every op alone, and of several
// launches that read each other's results, with values of one width or of several.
func TestSequences(t *testing.T) {
	kernels := sequenceKernels(t)
	byWidth := map[int][]*codegen.Kernel{}
	for _, k := range kernels {
		size := k.Operands[len(k.Operands)-1].DT.Size()
		byWidth[size] = append(byWidth[size], k)
	}
	rounds := 400
	if testing.Short() {
		rounds = 100
	}
	for _, isa := range runnable() {
		refused := 0
		try := func(seed uint64, some []*codegen.Kernel, n int) {
			s := newSequence(rand.New(rand.NewPCG(seed, 5)), some, n)
			err := s.check(isa)
			if errors.Is(err, native.ErrNoSequence) {
				refused++
			} else if err != nil {
				t.Errorf("%s, seed %d, %d launches: %v", isa.Name, seed, n, err)
			}
		}
		for i := range kernels {
			try(uint64(i), kernels[i:i+1], 1)
			try(uint64(i), kernels[i:i+1], 4)
			if t.Failed() {
				t.Fatalf("%v", kernels[i])
			}
		}
		for i := range rounds {
			try(uint64(i), kernels, 1+i%12)
			try(uint64(i), byWidth[4], 1+i%12)
			try(uint64(i), byWidth[8], 1+i%12)
			if t.Failed() {
				t.FailNow()
			}
		}
		if refused > rounds/2 {
			t.Errorf("%s: %d sequences are none", isa.Name, refused)
		}
	}
}

// A value that the next launch reads is not loaded, and not stored if nothing else reads it.
func TestSequenceKeepsValues(t *testing.T) {
	k, err := codegen.Parse("in 0 : float64\nin 1 : float64\nout 2 : float64\n%0 = load 0 : float64\n%1 = load 1 : float64\n%2 = mul %0 %1 : float64\nstore 2 %2\n")
	if err != nil {
		t.Fatal(err)
	}
	arg := func(b int) native.Arg { return native.Arg{Buffer: b} }
	list := []native.Launch{
		{Kernel: k, Args: []native.Arg{arg(0), arg(0), arg(1)}},
		{Kernel: k, Args: []native.Arg{arg(1), arg(0), arg(2)}},
		{Kernel: k, Args: []native.Arg{arg(2), arg(1), arg(3)}},
	}
	for _, isa := range amd64.ISAs {
		f, err := native.CompileSequence(list, []bool{false, true, true, false}, isa, true)
		if err != nil {
			t.Fatal(err)
		}
		text := f.Text()
		if n := strings.Count(text, "vmovsd"); n != 2 || strings.Count(text, "vmulpd") != 3 {
			t.Errorf("%s: %d loads and stores in\n%s", isa.Name, n, text)
		}
	}
}

package dist

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/codegen/native/amd64"
	"github.com/millrace-go/millrace/codegen/native/arm64"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
)

// Sums run as machine code where the processor has it. The code of a dtype is made once, in less
// than a millisecond.

// isa is the target, nil if there is none.
func isa() *native.ISA {
	switch machine.Level() {
	case machine.AVX2:
		return amd64.AVX2
	case machine.AVX512:
		return amd64.AVX512
	case machine.NEON:
		return arm64.NEON
	}
	return nil
}

// codeBytes bounds what one call processes: about 100 µs of work, see [machine.Call].
const codeBytes = 256 << 10

// code is machine code that adds two operands, or converts one.
type code struct {
	mem     *machine.Code
	in, out int // bytes of an element
	frame   int // words
}

// newCode makes code from operands of one dtype to a result of another. wide is the dtype in which
// it adds. Without an ISA there is none.
func newCode(operands int, in, wide, out ir.DType) (*code, error) {
	isa := isa()
	if isa == nil {
		return nil, nil
	}
	var b ir.Builder
	as := func(x ir.Ref, from, to ir.DType) ir.Ref {
		if from == to {
			return x
		}
		return b.Emit(ir.Cast, to, 0, x)
	}
	k := &codegen.Kernel{}
	var sum ir.Ref
	for i := range operands {
		k.Operands = append(k.Operands, codegen.Operand{Kind: codegen.Input, DT: in})
		x := as(b.Emit(ir.Load, in, uint64(i)), in, wide)
		if i > 0 {
			x = b.Emit(ir.Add, wide, 0, sum, x)
		}
		sum = x
	}
	k.Operands = append(k.Operands, codegen.Operand{Kind: codegen.Output, DT: out})
	k.Stores = []codegen.Store{{Operand: operands, Value: as(sum, wide, out)}}
	k.Body = b.Code
	k, err := codegen.Lower(k)
	if err != nil {
		return nil, err
	}
	f, err := native.Compile(k, native.Variant{Class: make([]codegen.AccessClass, len(k.Operands))}, isa, false)
	if err != nil {
		return nil, err
	}
	mem, err := machine.Map(f.Code)
	if err != nil {
		return nil, err
	}
	return &code{mem: mem, in: in.Size(), out: out.Size(), frame: f.Bytes / 8}, nil
}

// run computes dst from operands of as many elements. dst may be one of them.
func (c *code) run(dst []byte, operands ...[]byte) {
	const line = 64
	room := make([]uint64, c.frame+line/8) // the frame begins at a multiple of 64 bytes
	frame := room[(-uintptr(unsafe.Pointer(unsafe.SliceData(room)))%line)/8:]
	n := len(dst) / c.out
	for at := 0; at < n; {
		some := min(n-at, codeBytes/max(c.in, c.out))
		frame[native.FramePoints/8], frame[native.FrameRows/8] = uint64(some), 1
		for i, p := range operands {
			operand(frame, i, unsafe.Pointer(&p[at*c.in]), c.in)
		}
		operand(frame, len(operands), unsafe.Pointer(&dst[at*c.out]), c.out)
		machine.Call(c.mem.Addr(0), unsafe.Pointer(&frame[0]), machine.KeepMXCSR)
		at += some
	}
	runtime.KeepAlive(operands)
	runtime.KeepAlive(dst)
	runtime.KeepAlive(c.mem)
}

// operand sets an operand of a frame.
func operand(frame []uint64, i int, p unsafe.Pointer, step int) {
	w := frame[(native.FrameArgs+i*native.OperandBytes)/8:]
	w[native.Address/8], w[native.Step/8], w[native.RowStep/8] = uint64(uintptr(p)), uint64(step), 0
}

// sumCode has the code of a dtype: two parts to their sum; two parts to a sum in the wide dtype; two
// of these to one, or to the result; and a part to the wide dtype. Of a dtype whose sums have the same
// dtype they are all the first, and there is no last.
type sumCode struct {
	wide                            int // bytes of an element
	both, first, middle, last, cast *code
}

func newSumCode(of summing) (s *sumCode, err error) {
	defer func() {
		if err != nil {
			s, err = nil, fmt.Errorf("dist: sums of %v run without machine code: %w", of.dt, err)
		}
	}()
	dt, wide := of.dt, of.dt // of the parts, and of a number while it is added
	if dt.IsFloat() && dt.Size() == 2 {
		wide = millrace.Float32
	}
	s = &sumCode{wide: wide.Size()}
	if s.both, err = newCode(2, dt, wide, dt); err != nil || s.both == nil {
		return nil, err
	}
	if dt == wide || of.each {
		s.wide = dt.Size()
		s.first, s.middle, s.last = s.both, s.both, s.both
		return s, nil
	}
	for c, make := range map[**code]func() (*code, error){
		&s.first:  func() (*code, error) { return newCode(2, dt, wide, wide) },
		&s.middle: func() (*code, error) { return newCode(2, wide, wide, wide) },
		&s.last:   func() (*code, error) { return newCode(2, wide, wide, dt) },
		&s.cast:   func() (*code, error) { return newCode(1, dt, wide, wide) },
	} {
		if *c, err = make(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// add adds parts, as the functions in sums do.
func (s *sumCode) add(dst []byte, parts [][]byte) {
	switch len(parts) {
	case 1:
		copy(dst, parts[0])
		return
	case 2:
		s.both.run(dst, parts...)
		return
	}
	size := s.both.out
	block, list := sumBlock*s.wide, make([][]byte, len(parts))
	room := aligned((len(parts) + 1) / 2 * block)
	for at := 0; at < len(dst); at += sumBlock * size {
		to := dst[at:min(at+sumBlock*size, len(dst))]
		n := len(to) / size * s.wide
		for r, p := range parts {
			list[r] = p[at : at+len(to)]
		}
		all := s.pairs(s.first, list, room, n)
		if k := len(all) - 1; len(parts)%2 == 1 && s.cast != nil {
			wide := room[k*block:][:n]
			s.cast.run(wide, all[k])
			all[k] = wide
		}
		for len(all) > 2 {
			all = s.pairs(s.middle, all, room, n)
		}
		s.last.run(to, all...)
	}
}

// pairs adds neighbours of a list by code c, and returns the shorter list in its memory. A sum may
// take the place in room of one that was read before.
func (s *sumCode) pairs(c *code, list [][]byte, room []byte, n int) [][]byte {
	sums, block := list[:0], sumBlock*s.wide
	for i := 0; i < len(list); i += 2 {
		if i+1 == len(list) {
			sums = append(sums, list[i])
			break
		}
		sum := room[len(sums)*block:][:n]
		c.run(sum, list[i], list[i+1])
		sums = append(sums, sum)
	}
	return sums
}

// codes has the code of the sums that were needed so far.
var codes struct {
	sync.Mutex
	made map[summing]madeCode
}

type madeCode struct {
	code *sumCode
	err  error
}

// code makes the code of a sum when it is first needed.
func (s summing) code() (*sumCode, error) {
	codes.Lock()
	defer codes.Unlock()
	m, ok := codes.made[s]
	if !ok {
		m.code, m.err = newSumCode(s)
		if codes.made == nil {
			codes.made = map[summing]madeCode{}
		}
		codes.made[s] = m
	}
	return m.code, m.err
}

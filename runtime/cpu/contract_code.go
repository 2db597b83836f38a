package cpu

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
)

// dotCode is the functions of contractions of one kind of element: machine code in memory,
// or C's, which take the same frames. They are had when they are first asked for, once for
// the process, and stay.
type dotCode struct {
	*native.Dot
	code    *machine.Code // nil: C's
	element int32         // of C's
	flushes bool          // it can take denormals as zeros, by the rule of ir.FlushDenormals
}

// nativeISAs are what machine code is made for, by level.
var nativeISAs = map[machine.ISA]*native.ISA{machine.AVX2: native.AVX2, machine.AVX512: native.AVX512, machine.NEON: native.NEON}

// dotLevel is a level if there are contractions for it, else None.
func dotLevel(level machine.ISA) machine.ISA {
	if nativeISAs[level] == nil {
		return machine.None
	}
	return level
}

// dotSource says whose functions contractions take: machine code of a level if it is not
// None, else or where memory is refused C's. The zero value has none of both: Go's loops do
// it all.
type dotSource struct {
	level machine.ISA
	c     bool
}

type dotKey struct {
	level machine.ISA // None: of C
	dt    ir.DType
}

type madeDot struct {
	once sync.Once
	code *dotCode
	err  error
}

var dotCodes sync.Map // *madeDot by dotKey

var (
	errNoDot  = fmt.Errorf("cpu: contractions by Go alone: %w", errors.ErrUnsupported)
	errNoCDot = fmt.Errorf("cpu: contractions in C: %w", errors.ErrUnsupported)
)

// code is nil with an error where there is none: there is no encoder for this processor and
// these elements, or the system allows no memory to become executable, and the build has no
// C, or C is wrong.
func (s dotSource) code(dt ir.DType) (f *dotCode, err error) {
	err = errNoDot
	if s.level != machine.None {
		f, err = madeDotOf(dotKey{s.level, dt})
	}
	if err != nil && s.c {
		f, err = madeDotOf(dotKey{machine.None, dt})
	}
	return f, err
}

// tiles says that contractions of a dtype, which flush denormals or not, are computed in
// tiles, of sizes that can be chosen, and leave out what nobody sees. Go's loops do neither.
func (s dotSource) tiles(dt ir.DType, flush bool) bool {
	if narrowDots[dt] != nil {
		dt = ir.Int32
	}
	f, err := s.code(dt)
	return err == nil && f.does(dt, flush)
}

// does says that contractions of a dtype, which flush denormals or not, may take f.
func (f *dotCode) does(dt ir.DType, flush bool) bool {
	return f.flushes || !flush || floatBitsOf[dt] == nil
}

func (s dotSource) String() string {
	if s.level == machine.None && s.c {
		return "c"
	}
	return s.level.String()
}

func madeDotOf(key dotKey) (*dotCode, error) {
	found, ok := dotCodes.Load(key)
	if !ok {
		found, _ = dotCodes.LoadOrStore(key, new(madeDot))
	}
	m := found.(*madeDot)
	m.once.Do(func() {
		if key.level == machine.None {
			if m.code, m.err = newCDot(key.dt); m.err == nil {
				m.code, m.err = m.code.probed(key.dt)
			}
		} else {
			m.code, m.err = newMachineDot(key)
		}
	})
	return m.code, m.err
}

// at is the function at an offset, of machine code.
func (f *dotCode) at(offset int) uintptr {
	if f.code == nil {
		return 0 // what C does is not taken down
	}
	return f.code.Addr(offset)
}

func newMachineDot(key dotKey) (*dotCode, error) {
	d, err := native.NewDot(nativeISAs[key.level], key.dt, false)
	if err != nil {
		return nil, err
	}
	code, err := machine.Map(d.Code)
	if err != nil {
		lesserRefused.Add(1) // others do it
		return nil, err
	}
	_ = machine.Name(code, 0, len(d.Code), "millrace contraction")
	// NEON takes a product for tiny by what it is before it is rounded.
	return &dotCode{Dot: d, code: code, flushes: key.level != machine.NEON}, nil
}

// probed is f, unless what it computes is wrong: somebody's flags may have had the compiler
// change arithmetic.
func (f *dotCode) probed(dt ir.DType) (*dotCode, error) {
	e := newExecutor(1)
	e.mem, e.dots.code[dt] = newMemory(0), f
	defer func() {
		e.close()
		e.mem.close()
	}()
	if err := probeContraction(dt, func(c *contraction) error { e.contract(c); return nil }); err != nil {
		lesserRefused.Add(1)
		return nil, err
	}
	return f, nil
}

// call runs a function.
func (f *dotCode) call(at int, frame unsafe.Pointer, mxcsr uint32) {
	if f.code == nil {
		callC(f.element, at, frame)
		return
	}
	machine.Call(f.code.Addr(at), frame, mxcsr)
}

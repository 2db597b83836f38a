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

// dotCode holds the functions of contractions for one kind of element: machine code in memory, or
// C functions, which take the same frames. They are made when first needed, once per process, and
// kept.
type dotCode struct {
	*native.Dot
	code    *machine.Code // nil: C functions
	element int32         // for C functions
	flushes bool          // it can treat denormals as zeros, by the rule of ir.FlushDenormals
}

// nativeISAs maps each level to the ISA that machine code is made for.
var nativeISAs = map[machine.ISA]*native.ISA{machine.AVX2: native.AVX2, machine.AVX512: native.AVX512, machine.NEON: native.NEON}

// dotLevel returns level if there is machine code of contractions for it, else None.
func dotLevel(level machine.ISA) machine.ISA {
	if nativeISAs[level] == nil {
		return machine.None
	}
	return level
}

// dotSource selects the functions of contractions: machine code for a level other than None; else,
// or if executable memory is refused, C functions if c is set. The zero value selects neither:
// Go's loops do everything.
type dotSource struct {
	level machine.ISA
	c     bool
}

type dotKey struct {
	level machine.ISA // None: C
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

// code returns the functions for elements of a dtype, or nil and an error. Machine code is missing
// if there is no encoder for this processor and these elements, or if the system allows no
// executable memory. C is missing if the build has none or the probes failed.
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

// tiles reports that contractions of a dtype, with or without flushing denormals, are computed in
// tiles whose sizes can be chosen, and can skip hidden results. Go's loops do neither.
func (s dotSource) tiles(dt ir.DType, flush bool) bool {
	if narrowDots[dt] != nil {
		dt = ir.Int32
	}
	f, err := s.code(dt)
	return err == nil && f.does(dt, flush)
}

// does reports that f can compute contractions of a dtype, with or without flushing denormals.
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

// at returns the address of the machine code function at an offset.
func (f *dotCode) at(offset int) uintptr {
	if f.code == nil {
		return 0 // C calls are not recorded
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
		lesserRefused.Add(1) // C or Go takes over
		return nil, err
	}
	_ = machine.Name(code, 0, len(d.Code), "millrace contraction")
	// NEON decides that a product is tiny before it rounds the product.
	return &dotCode{Dot: d, code: code, flushes: key.level != machine.NEON}, nil
}

// probed returns f, or an error if f computes wrong results: a user's compiler flags may have
// changed arithmetic.
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

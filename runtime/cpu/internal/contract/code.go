package contract

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/threads"
)

// functions holds the functions of contractions for one kind of element: machine code in memory, or
// C functions, which take the same frames. They are made when first needed, once per process, and
// kept.
type functions struct {
	*native.Dot
	code    *machine.Code // nil: C functions
	element int32         // for C functions
	flushes bool          // it can treat denormals as zeros, by the rule of ir.FlushDenormals
}

// Source selects the functions of contractions: machine code for a level other than None; else,
// or if executable memory is refused, C functions if C is set. The zero value selects neither:
// Go's loops do everything.
type Source struct {
	Level machine.ISA
	C     bool
}

type codeKey struct {
	level machine.ISA // None: C
	dt    ir.DType
}

type made struct {
	once sync.Once
	code *functions
	err  error
}

var codes sync.Map // *made by codeKey

var (
	errNone = fmt.Errorf("cpu: contractions run in Go alone, without machine code or C: %w", errors.ErrUnsupported)
	errNoC  = fmt.Errorf("cpu: this build has no C code for contractions: %w", errors.ErrUnsupported)
)

// functions returns those for elements of a dtype, or nil and an error. Machine code is missing
// if there is no encoder for this processor and these elements, or if the system allows no
// executable memory. C is missing if the build has none or the probes failed.
func (s Source) functions(dt ir.DType) (f *functions, err error) {
	err = errNone
	if s.Level != machine.None {
		f, err = madeOf(codeKey{s.Level, dt})
	}
	if err != nil && s.C {
		f, err = madeOf(codeKey{machine.None, dt})
	}
	return f, err
}

// Tiles reports that contractions of a dtype, with or without flushing denormals, are computed in
// tiles whose sizes can be chosen, and can skip hidden results. Go's loops do neither.
func (s Source) Tiles(dt ir.DType, flush bool) bool {
	if converters[dt] != nil {
		dt = ir.Int32
	}
	f, err := s.functions(dt)
	return err == nil && f.does(dt, flush)
}

// does reports that f can compute contractions of a dtype, with or without flushing denormals.
func (f *functions) does(dt ir.DType, flush bool) bool {
	return f.flushes || !flush || floatBitsOf[dt] == nil
}

func (s Source) String() string {
	if s.Level == machine.None && s.C {
		return "c"
	}
	return s.Level.String()
}

func madeOf(key codeKey) (*functions, error) {
	found, ok := codes.Load(key)
	if !ok {
		found, _ = codes.LoadOrStore(key, new(made))
	}
	m := found.(*made)
	m.once.Do(func() {
		if key.level == machine.None {
			if m.code, m.err = newC(key.dt); m.err == nil {
				m.code, m.err = m.code.probed(key.dt)
			}
		} else {
			m.code, m.err = newMachine(key)
		}
	})
	return m.code, m.err
}

// at returns the address of the machine code function at an offset.
func (f *functions) at(offset int) uintptr {
	if f.code == nil {
		return 0 // C calls are not recorded
	}
	return f.code.Addr(offset)
}

func newMachine(key codeKey) (*functions, error) {
	d, err := native.NewDot(jit.ISAOf(key.level), key.dt, false)
	if err != nil {
		return nil, err
	}
	code, err := machine.Map(d.Code)
	if err != nil {
		jit.Refused.Add(1) // C or Go takes over
		return nil, err
	}
	_ = machine.Name(code, 0, len(d.Code), "millrace contraction")
	// NEON decides that a product is tiny before it rounds the product.
	return &functions{Dot: d, code: code, flushes: key.level != machine.NEON}, nil
}

// probed returns f, or an error if f computes wrong results: a user's compiler flags may have
// changed arithmetic.
func (f *functions) probed(dt ir.DType) (*functions, error) {
	pool, mem := threads.NewPool(1), memory.New(0)
	e := NewEngine(pool, mem, Source{})
	e.code[dt] = f
	defer func() {
		pool.Close()
		e.Close()
		mem.Close()
	}()
	if err := runProbes(dt, func(c *Contraction) error { e.Run(c); return nil }); err != nil {
		jit.Refused.Add(1)
		return nil, err
	}
	return f, nil
}

// call runs a function.
func (f *functions) call(at int, frame unsafe.Pointer, mxcsr uint32) {
	if f.code == nil {
		callC(f.element, at, frame)
		return
	}
	machine.Call(f.code.Addr(at), frame, mxcsr)
}

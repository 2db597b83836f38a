package cpu

import (
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
)

// dotCode is machine code for contractions of one kind of element, in memory. It is
// made when it is first asked for, once for the process, and stays.
type dotCode struct {
	*native.Dot
	code *machine.Code
}

// nativeISAs are what machine code is made for, by level.
var nativeISAs = map[machine.ISA]*native.ISA{machine.AVX2: native.AVX2, machine.AVX512: native.AVX512}

// dotLevel is a level if there are contractions for it, else None: they are Go's then.
func dotLevel(level machine.ISA) machine.ISA {
	if nativeISAs[level] == nil {
		return machine.None
	}
	return level
}

type dotKey struct {
	level machine.ISA
	dt    ir.DType
}

type madeDot struct {
	once sync.Once
	code *dotCode
	err  error
}

var dotCodes sync.Map // *madeDot by dotKey

// dotCodeOf is nil with an error where there is none: there is no encoder for this
// processor, or the system allows no memory to become executable.
func dotCodeOf(level machine.ISA, dt ir.DType) (*dotCode, error) {
	if level == machine.None {
		return nil, machine.ErrUnsupported
	}
	key := dotKey{level, dt}
	found, ok := dotCodes.Load(key)
	if !ok {
		found, _ = dotCodes.LoadOrStore(key, new(madeDot))
	}
	m := found.(*madeDot)
	m.once.Do(func() {
		var d *native.Dot
		if d, m.err = native.NewDot(nativeISAs[level], dt, false); m.err != nil {
			return
		}
		var code *machine.Code
		if code, m.err = machine.Map(d.Code); m.err == nil {
			m.code = &dotCode{d, code}
			_ = machine.Name(code, 0, len(d.Code), "millrace contraction")
		} else {
			lesserRefused.Add(1) // Go does it
		}
	})
	return m.code, m.err
}

// at is the function at an offset.
func (f *dotCode) at(offset int) uintptr { return f.code.Addr(offset) }

// call runs the function at an offset.
func (f *dotCode) call(at int, frame unsafe.Pointer, mxcsr uint32) {
	machine.Call(f.at(at), frame, mxcsr)
}

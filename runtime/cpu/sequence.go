package cpu

import (
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
)

const (
	// sequencePoints is the most points of a launch in a sequence.
	sequencePoints = 1024
	// sequenceLaunches is the most launches of a sequence.
	sequenceLaunches = 256
)

// sequence is a list of launches as one function. Its frame holds the addresses of buffers, one
// word per buffer.
type sequence struct {
	code  jit.Code
	frame unsafe.Pointer
	room  []byte // memory of frame
	mxcsr uint32
	most  int // most runs per call

	bufs   []*memory.Buffer
	needs  []int64   // least bytes of each buffer
	places [][]int32 // by launch and operand: the buffer's number, -1 for none
	uses   []int     // by buffer: the number of operands in it
}

var errNotSmall = fmt.Errorf("%w: one is too large or not elementwise", native.ErrNoSequence)

// made reports that there is a function.
func (s *sequence) made() bool { return s.frame != nil }

// newSequence makes one function of a list, and counts its launches.
func (p *prepared) newSequence(list []runtime.Launch, own []runtime.Buffer) (s sequence, err error) {
	if len(list) > sequenceLaunches {
		return s, errNotSmall
	}
	begin := time.Now()
	d := p.d
	s.places = make([][]int32, len(list))
	var form []native.Launch
	for i := range list {
		l := &list[i]
		r, err := d.order(l, 1)
		if err != nil {
			return s, errNotSmall // Run reports the error
		}
		s.places[i] = make([]int32, len(l.Args))
		for j := range l.Args {
			s.places[i][j] = -1
		}
		if r.empty {
			continue
		}
		f, err := s.launch(&r, i)
		if err != nil {
			return s, err
		}
		form = append(form, f)
		p.add(&r)
	}
	if len(form) == 0 {
		return s, errNotSmall
	}
	private := make([]bool, len(s.bufs))
	for i, b := range s.bufs {
		private[i] = slices.Contains(own, runtime.Buffer(b))
	}
	if err := fault.Hit(fault.Compile); err != nil {
		return s, err
	}
	f, err := native.CompileSequence(form, private, jit.ISA(), false)
	if err != nil {
		return s, err
	}
	if s.code, err = jit.Map(f, "sequence"); err != nil {
		return s, err
	}
	s.room = make([]byte, f.Bytes+64)
	at := unsafe.Pointer(unsafe.SliceData(s.room))
	s.frame = unsafe.Add(at, -uintptr(at)&63)
	s.most = max(1, callWork/max(f.Work, 1))
	for i := range s.bufs {
		s.point(i)
	}
	d.count.native.Add(1)
	d.count.compiled.Add(int64(time.Since(begin)))
	return s, nil
}

// launch converts a launch to the form that package native takes.
func (s *sequence) launch(r *ready, number int) (native.Launch, error) {
	p, l := r.p, r.l
	f := native.Launch{Scalars: append([]uint64(nil), l.Scalars...)}
	if p.hasRows || p.parts != nil || p.scatter != nil || p.soft || p.faults || r.total > sequencePoints {
		return f, errNotSmall
	}
	mxcsr := jit.MXCSR(p.kernel.Denormals)
	if len(s.bufs) > 0 && mxcsr != s.mxcsr || p.kernel.Denormals == ir.FlushDenormals && !jit.Flushes() {
		return f, errNotSmall
	}
	s.mxcsr = mxcsr
	lowered, err := p.sched.lowered()
	if err != nil {
		return f, err
	}
	f.Kernel = lowered.Phases[0].Kernel
	f.Dims = append(f.Dims, l.Dims[:l.Rank]...)
	for i := range l.Args {
		a := &l.Args[i]
		if p.kernel.Operands[i].Kind == codegen.Index || len(a.Stages) > 0 {
			return f, errNotSmall
		}
		lo, hi := reach(a, l.Dims[:l.Rank])
		at := s.buffer(a.Buf.(*memory.Buffer))
		s.places[number][i] = at
		if lo <= hi {
			s.needs[at] = max(s.needs[at], (hi+1)*int64(p.kernel.Operands[i].DT.Size()))
		}
		f.Args = append(f.Args, native.Arg{Buffer: int(at), Offset: a.Offset, Stride: append([]int64(nil), a.Stride[:l.Rank]...)})
	}
	return f, nil
}

// buffer returns the number of a buffer.
func (s *sequence) buffer(b *memory.Buffer) int32 {
	i := slices.Index(s.bufs, b)
	if i < 0 {
		i = len(s.bufs)
		s.bufs, s.needs, s.uses = append(s.bufs, b), append(s.needs, 0), append(s.uses, 0)
	}
	s.uses[i]++
	return int32(i)
}

// point writes the address of a buffer.
func (s *sequence) point(i int) {
	*jit.Word(s.frame, s.code.Func.Scalars+8*i) = int64(uintptr(s.bufs[i].P))
}

// set replaces a buffer. The code depends on which operands share a buffer and which do not, so
// set refuses a buffer that would change this.
func (s *sequence) set(places []runtime.Place, x *memory.Buffer) bool {
	at, n := int32(-1), 0
	for _, p := range places {
		switch i := s.places[p.Launch][p.Arg]; {
		case i < 0:
		case at >= 0 && i != at:
			return false
		default:
			at, n = i, n+1
		}
	}
	switch {
	case at < 0 || s.bufs[at] == x:
		return true
	case n != s.uses[at] || s.needs[at] > x.Bytes() || slices.Contains(s.bufs, x):
		return false
	}
	s.bufs[at] = x
	s.point(int(at))
	return true
}

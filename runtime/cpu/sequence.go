package cpu

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"time"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Prepare prepares a list to be run many times. If kernels become machine code and the launches
// are small, the list becomes one function; else it becomes a list for the usual runtime.
func (d *device) Prepare(list []runtime.Launch, own []runtime.Buffer) runtime.Prepared {
	if runtime.HasChains(list) || len(list) == 0 || d.enter() != nil {
		return nil
	}
	defer d.life.RUnlock()
	if !d.machine {
		return d.prepareList(list)
	}
	s, err := d.newSequence(list, own)
	if err == nil {
		return s
	}
	if !errors.Is(err, native.ErrNoSequence) {
		d.refuseSequence(err)
	}
	return d.prepareList(list)
}

const (
	// sequencePoints is the most points of a launch in a sequence.
	sequencePoints = 1024
	// sequenceLaunches is the most launches of a sequence.
	sequenceLaunches = 256
)

// sequence is a list of launches as one function. Its frame holds the addresses of buffers, one
// word per buffer.
type sequence struct {
	d     *device
	code  machineCode
	frame unsafe.Pointer
	room  []byte // memory of frame
	mxcsr uint32
	most  int // most runs per call

	bufs   []*buffer
	needs  []int64   // least bytes of each buffer
	places [][]int32 // by launch and operand: the buffer's number, -1 for none
	uses   []int     // by buffer: the number of operands in it

	launches, read, written int64 // counts of one run
	runs                    int64 // runs that Count has not added yet
}

var errNotSmall = fmt.Errorf("%w: too large, or of another kind", native.ErrNoSequence)

func (d *device) newSequence(list []runtime.Launch, own []runtime.Buffer) (*sequence, error) {
	if len(list) > sequenceLaunches {
		return nil, errNotSmall
	}
	begin := time.Now()
	s := &sequence{d: d, places: make([][]int32, len(list))}
	var form []native.Launch
	for i := range list {
		l := &list[i]
		r, err := d.order(l, 1)
		if err != nil {
			return nil, errNotSmall // Run reports the error
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
			return nil, err
		}
		form = append(form, f)
		read, written := codegen.Traffic(r.p.kernel, l, &d.caps.ElemSize)
		s.launches, s.read, s.written = s.launches+1, s.read+read, s.written+written
	}
	if len(form) == 0 {
		return nil, errNotSmall
	}
	private := make([]bool, len(s.bufs))
	for i, b := range s.bufs {
		for _, o := range own {
			private[i] = private[i] || o == runtime.Buffer(b)
		}
	}
	if err := fault.Hit(fault.Compile); err != nil {
		return nil, err
	}
	f, err := native.CompileSequence(form, private, machineISA(), false)
	if err != nil {
		return nil, err
	}
	if s.code, err = mapCode(f, "sequence"); err != nil {
		return nil, err
	}
	s.room = make([]byte, f.Bytes+64)
	p := unsafe.Pointer(unsafe.SliceData(s.room))
	s.frame = unsafe.Add(p, -uintptr(p)&63)
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
	mxcsr := mxcsrOf(p.kernel.Denormals)
	if s.launches > 0 && mxcsr != s.mxcsr || p.kernel.Denormals == ir.FlushDenormals && !machineFlushes() {
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
		at := s.buffer(a.Buf.(*buffer))
		s.places[number][i] = at
		if lo <= hi {
			s.needs[at] = max(s.needs[at], (hi+1)*int64(p.kernel.Operands[i].DT.Size()))
		}
		f.Args = append(f.Args, native.Arg{Buffer: int(at), Offset: a.Offset, Stride: append([]int64(nil), a.Stride[:l.Rank]...)})
	}
	return f, nil
}

// buffer returns the number of a buffer.
func (s *sequence) buffer(b *buffer) int32 {
	for i, have := range s.bufs {
		if have == b {
			s.uses[i]++
			return int32(i)
		}
	}
	s.bufs, s.needs, s.uses = append(s.bufs, b), append(s.needs, 0), append(s.uses, 1)
	return int32(len(s.bufs) - 1)
}

// point writes the address of a buffer.
func (s *sequence) point(i int) {
	*word(s.frame, s.code.f.Scalars+8*i) = int64(uintptr(s.bufs[i].p))
}

// Set replaces a buffer. The code depends on which operands share a buffer and which do not, so
// Set refuses a buffer that would change this.
func (s *sequence) Set(places []runtime.Place, b runtime.Buffer) bool {
	x, ok := b.(*buffer)
	if !ok {
		return false
	}
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
	case n != s.uses[at] || s.needs[at] > x.bytes:
		return false
	}
	for _, other := range s.bufs {
		if other == x {
			return false
		}
	}
	s.bufs[at] = x
	s.point(int(at))
	return true
}

// Run runs the sequence once.
func (s *sequence) Run() (done bool, err error) {
	if err := s.d.enter(); err != nil {
		return true, err
	}
	defer s.d.life.RUnlock()
	if err := fault.Hit(fault.Launch); err != nil {
		return true, &runtime.LaunchError{Err: fmt.Errorf("cpu: %w", err)}
	}
	s.Repeat(1)
	s.Count()
	return true, nil
}

// Repeat runs the sequence n times.
func (s *sequence) Repeat(n int) bool {
	s.runs += int64(n)
	for n > 0 {
		some := min(n, s.most)
		*word(s.frame, native.FrameRows) = int64(some)
		machine.Call(s.code.entry, s.frame, s.mxcsr)
		n -= some
	}
	goruntime.KeepAlive(s)
	return true
}

// Count adds the finished runs to the device's counters.
func (s *sequence) Count() {
	c := &s.d.count
	c.launches.Add(s.launches * s.runs)
	c.read.Add(s.read * s.runs)
	c.written.Add(s.written * s.runs)
	c.prepared.Add(s.launches * s.runs)
	s.runs = 0
}

// Close frees the code.
func (s *sequence) Close() {
	s.Count()
	s.code.code.Free()
}

var (
	_ runtime.Preparer = (*device)(nil)
	_ runtime.Sequence = (*sequence)(nil)
)

package stream

import (
	"errors"
	"sync"
	"time"
	"unsafe"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/exec"
	"github.com/millrace-go/millrace/internal/engine/jobqueue"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// A host op is computed by a Go function, such as a collective among processes. The stream is cut
// behind the op that computes its operand, and the function runs as a job of a lane of its own.
// Jobs that read the result depend on that job as on any other lane's; everything else goes on
// meanwhile. On a tape a host op is a part of its own kind, which each run submits again.

// HostLane runs host ops one after another, in the order in which they were submitted.
type HostLane struct {
	dev      *Device
	mu       sync.Mutex // of the lane's next number
	lane     *jobqueue.Lane
	src, dst []byte // memory of the run in progress, as large as the largest so far
}

// NewHostLane makes a lane for host ops on the device's tensors.
func (d *Device) NewHostLane() *HostLane {
	l := &HostLane{dev: d, lane: d.lanes.NewLane()}
	d.hosts.add(l)
	return l
}

// HostFunc computes a host op: dst from src, which are dense, row-major and aligned for their
// elements. They may be the tensors' own memory, so src is not written. They are the function's
// until it returns, and for ever if it returns an error that is not operror.Untouched. fault is the
// error of the operand, or of finding memory; dst and src are then nil.
type HostFunc = func(dst, src []byte, fault error) error

// HostOp describes a host op.
type HostOp struct {
	Lane  *HostLane
	Name  string
	DT    ir.DType // of the result
	Shape ir.Shape
	// Begin is called once for each run of the op, in the order of the runs, with locks held. It must
	// not wait. The function that it returns is always called, by the lane's goroutine.
	Begin func() HostFunc

	form   *queue.Form
	caller string
	in     kind // the operand's
}

// Record makes dst the result of the host op on h's value. It does not wait, but for the op
// exec.MaxQueued ops earlier on the lane. An error is stored in dst, and is the function's fault. On
// a Trial, which runs nothing, Begin is not called.
func (x HostOp) Record(dst, h *Value) {
	x.caller = operror.Caller()
	x.form = queue.NewForm(x.Shape)
	for {
		switch err := x.record(dst, h); err {
		case nil:
			x.Lane.bound()
			return
		case errMoved:
		default:
			if at := new(trialError); !errors.As(err, &at) {
				x.submit(nil, nil, nil, err)
			}
			v := h.now()
			failIn(dst, v.home, h.owner(), x.Name, err, []Arg{{V: h}})
			return
		}
	}
}

func (x *HostOp) record(dst, h *Value) error {
	v := h.now()
	s, scope := v.home, h.owner()
	if s == nil {
		if v.state == stFailed {
			return v.ext.err
		}
		return operror.ErrNoValue
	}
	if err := s.usable(); err != nil {
		return err
	}
	st, err := handOver(h, nil, s)
	if err != nil {
		return err
	}
	defer st.Release()
	x.in = st.kind
	b, err := s.room(s.dev.Driver.Alloc, x.DT, x.Shape)
	s.mu.Lock()
	if err != nil {
		s.spoil()
		s.mu.Unlock()
		return err
	}
	if s.taped() {
		s.taping.notes(st.Storage, st.of)
		s.taping.host(x, st.Storage, b)
	}
	x.submit(s, st.Storage, b, nil)
	dst.home, dst.dt, dst.form, dst.state = s, x.DT, x.form, stReady
	dst.mem.Store(&b.Dense)
	b.Count(memory.Handles)
	s.came(dst, true, nil)
	s.enter(dst, scope)
	if dst.owner() == nil {
		s.watch(dst)
	}
	s.unlock()
	s.entered(dst, scope)
	return nil
}

// submit queues a run of the op, which reads in and writes b. The lock of s is held. If there is no
// operand or no memory for the result, it queues a run with that cause as its fault.
func (x *HostOp) submit(s *Stream, in *memory.Storage, b *memory.Block, cause error) {
	j := &hostJob{op: x, s: s, cause: cause}
	l := x.Lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if cause == nil {
		j.in, j.out = in, b
		if m := in.Written(); m.Lane != l.lane && !m.Passed() {
			j.after = m
		}
		in.Hold(l.lane)
		b.Home = s.lane
		b.WrittenNext(l.lane)
	}
	j.begin()
}

// waitHostOps returns when all host ops submitted so far have run. They may wait for other
// processes, so the engine does not wait for them where it needs memory or time.
func (d *Device) waitHostOps() {
	for _, l := range d.hosts.list() {
		l.mu.Lock() // a run that is being submitted counts
		last := l.lane.Last()
		l.mu.Unlock()
		last.Wait()
	}
}

// bound waits until no more than exec.MaxQueued ops are queued.
func (l *HostLane) bound() {
	l.mu.Lock()
	last := l.lane.Next
	l.mu.Unlock()
	if last > exec.MaxQueued {
		jobqueue.After(l.lane, last-exec.MaxQueued).Wait()
	}
}

// hostMemory is memory for elements of any dtype, which is old if that is large enough.
func hostMemory(old *[]byte, form *queue.Form, dt ir.DType) []byte {
	n := int(form.Elems) * dt.Size()
	if n <= len(*old) {
		return (*old)[:n]
	}
	words := make([]uint64, (n+7)/8)
	*old = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)
	return (*old)[:n]
}

// hostInList is a host op of a bound tape.
type hostInList struct{ op *HostOp }

// Begin queues a run of the op. The list holds the blocks until it has run.
func (x hostInList) Begin(of exec.Owner, after jobqueue.Moment, in *memory.Storage, out *memory.Block) jobqueue.Moment {
	l := x.op.Lane
	j := listedHosts.Get().(*hostJob)
	*j = hostJob{op: x.op, s: of.(*Stream), after: after, in: in, out: out, listed: true}
	l.mu.Lock()
	defer l.mu.Unlock()
	j.begin()
	return l.lane.Last()
}

var listedHosts = sync.Pool{New: func() any { return new(hostJob) }}

// hostJob is one run of a host op.
type hostJob struct {
	op    *HostOp
	s     *Stream
	after jobqueue.Moment // the operand is written
	in    *memory.Storage
	out   *memory.Block
	cause error // if set, there are no in and out
	run   HostFunc

	listed bool // a list holds in and out
	closed bool // the device was closed before: its memory may be gone when the job runs
}

// begin queues the run. The lock of the lane is held: Close waits for each run that is not
// marked as closed.
func (j *hostJob) begin() {
	l, s := j.op.Lane, j.s
	j.closed = l.dev.Closed.Load()
	j.run = j.op.Begin()
	l.lane.Submit(j, true) // from here on j may be that of another run
	if s != nil {          // nil: a run that cannot begin
		s.ends.note(l.lane.Last())
	}
}

// Run computes the result and releases the job's memory.
func (j *hostJob) Run() {
	if j.cause != nil {
		j.call(nil, nil, j.cause) // the caller has the error
		return
	}
	j.after.Wait()
	start := time.Now()
	e := j.compute()
	if e != nil || j.listed {
		j.out.Fault.Store(e)
	}
	if d := j.s.dev; d.TellsHostOp() {
		ev := device.HostOpEvent{Stream: j.s.num, Op: j.op.Name, Bytes: j.op.in.form.Elems * int64(j.op.in.dt.Size()), Start: start, Elapsed: time.Since(start)}
		if e != nil {
			ev.Err = e
		}
		d.OnHostOp(ev)
	}
	if j.listed {
		*j = hostJob{}
		listedHosts.Put(j)
		return
	}
	j.in.Unhold(j.op.Lane.lane)
	j.out.Unhold(j.op.Lane.lane)
}

// compute returns the error of the result. The first cause is the useful one, so this is the
// operand's if that has one.
func (j *hostJob) compute() *operror.Error {
	if e := j.in.Fault.Load(); e != nil {
		j.call(nil, nil, e)
		return e
	}
	err := runtime.ErrClosed
	if j.closed {
		j.call(nil, nil, err)
	} else {
		err = j.onMemory()
	}
	if err == nil {
		return nil
	}
	e := &operror.Error{Op: j.op.Name, Caller: j.op.caller, Shapes: []ir.Shape{j.op.in.form.Shape}, Err: err}
	j.s.Report(e)
	return e
}

// onMemory calls the function with the tensors' memory, or with copies.
func (j *hostJob) onMemory() (err error) {
	x, m := j.op, &j.s.dev.mem
	src, dst := m.InPlace(x.in.dt, x.in.form.Shape, j.in), m.InPlace(x.DT, x.form.Shape, &j.out.Dense)
	readHere, wroteHere := src != nil, dst != nil
	if !readHere {
		src = hostMemory(&x.Lane.src, x.in.form, x.in.dt)
		err = m.ReadDense(src, x.in.dt, x.in.form.Shape, j.in)
	}
	if !wroteHere {
		dst = hostMemory(&x.Lane.dst, x.form, x.DT)
	}
	if err != nil {
		j.call(nil, nil, err)
	} else if err = j.call(dst, src, nil); errors.As(err, new(*operror.Untouched)) {
		return err
	} else if err != nil {
		x.Lane.src, x.Lane.dst = nil, nil // a library may still use them, or the tensors' memory
		m.Abandon(j.in.Buf, j.out.Buf)
	} else if !wroteHere && len(dst) > 0 {
		err = m.Driver.Write(j.out.Buf, x.DT, 0, dst)
	}
	return err
}

// call turns a panic of the function into an error: the panic would leave the lane busy for ever.
func (j *hostJob) call(dst, src []byte, fault error) (err error) {
	defer operror.Recover("host op", &err)
	return j.run(dst, src, fault)
}

// host adds a part to the tape: a host op that reads in and writes out. The lock is held.
func (t *Taping) host(x *HostOp, in *memory.Storage, out *memory.Block) {
	p := &tapePart{host: x, end: segment.End{ID: -1}}
	p.operands = []tapeOperand{{0, t.source(in)}}
	p.results = []tapeResult{{-1, t.tape.products, x.DT, x.form}}
	t.known[&out.Dense] = tapeSource{tapeProduct, t.tape.products}
	t.tape.products++
	t.tape.parts = append(t.tape.parts, p)
	t.tape.hosts = true
}

// host submits a host op again. The lock is held.
func (p *playing) host(part *tapePart) error {
	s, x := p.s, part.host
	in := p.memory(part.operands[0].from)
	in.Retain() // until the job holds it
	defer in.Release()
	b, err := s.dev.mem.Alloc(s.dev.Bytes(x.DT, x.Shape), true)
	if p.dry {
		err = s.zeros(x, b, err)
	} else {
		x.submit(s, in, b, err)
	}
	if err != nil {
		return err
	}
	if v := p.made[part.results[0].product]; v != nil {
		if v.home == nil { // otherwise a handle names it already
			v.home, v.dt, v.form = s, x.DT, x.form
		}
		b.RetainAs(memory.Handles)
		v.state = stReady
		v.mem.Store(&b.Dense)
		if v.unscoped() {
			b.Watch()
		}
	}
	b.Release()
	return nil
}

// zeros makes the result of a host op zeros, in a run that looks for plans. Other processes do not
// take part in it: some may know their plans already.
func (s *Stream) zeros(x *HostOp, b *memory.Block, err error) error {
	if err != nil {
		return err
	}
	b.Home = s.lane
	if n := int(x.form.Elems) * x.DT.Size(); n > 0 {
		if err = s.dev.Driver.Write(b.Buf, x.DT, 0, make([]byte, n)); err != nil {
			b.Release()
		}
	}
	return err
}

// missed runs the host ops of a tape for a run that could not begin: their functions must hear of
// it.
func (t *Tape) missed(err error) error {
	for _, part := range t.parts {
		if part.host != nil {
			part.host.submit(nil, nil, nil, err)
		}
	}
	return err
}

// written waits for the results of host ops, which no job of the stream writes.
func (t *Tape) written(st *memory.Storage) {
	if t.hosts {
		st.Written().Wait()
	}
}

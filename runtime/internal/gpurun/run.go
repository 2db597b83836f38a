package gpurun

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/runtime"
)

// maxBacklog bounds the pending submissions. Each holds native memory until it is done, and a
// program without reads could queue without end.
const maxBacklog = 512

// maxDispatches bounds the dispatches of one submission, and thereby the memory for their words.
const maxDispatches = 2048

// batch is a Run before its submission. Several may exist at a time; their shared state is guarded
// where they are submitted.
type batch struct {
	dev        *Runner
	trial      bool // its launches must not be run again
	dispatches []Dispatch
	begins     []int       // with keep, by taken launch: its first dispatch
	words      []uint32    // of all dispatches, each part aligned
	uses       []*compiled // shaders of the dispatches, each once
	scratch    []*buffer
	split      splitter
	keep       func() error // takes the dispatches instead of their submission; usually nil
	faultLog

	work work // of the taken launches
}

// work is what launches add to runtime.Stats.
type work struct{ launches, read, written int64 }

// add counts n runs of the same work.
func (c *counters) add(w *work, n int64) {
	c.launches.Add(n * w.launches)
	c.read.Add(n * w.read)
	c.written.Add(n * w.written)
}

// Run cuts the launches into dispatches and submits them as one pass.
func (d *Runner) Run(list []runtime.Launch) (err error) {
	defer d.guard(&err)
	if err := d.enter(); err != nil {
		return err
	}
	if err := fault.Hit(fault.Launch); err != nil {
		return &runtime.LaunchError{Err: err}
	}
	d.sweep()
	if x := d.repeated(list); x != nil {
		defer d.done(x)
		return x.run(list)
	}
	return d.dispatchAll(list, false)
}

// dispatchAll cuts the launches into dispatches and submits them. Trials are not counted.
func (d *Runner) dispatchAll(list []runtime.Launch, trial bool) error {
	if !d.notes.begun.Load() {
		d.notes.begun.Store(true)
	}
	b := d.newBatch()
	b.trial = trial
	defer b.release()
	if err := b.takeAll(list); err != nil {
		return err
	}
	if !trial {
		d.stats.add(&b.work, 1)
	}
	return nil
}

func (d *Runner) newBatch() *batch {
	b := &batch{dev: d}
	if w, ok := d.words.Get().(*[]uint32); ok {
		b.words = *w
	}
	b.split = splitter{limits: d.limits, emit: b.emit, scratch: b.alloc, build: b.build, sorter: b.sort}
	return b
}

// takeAll takes launches and submits the last dispatches.
func (b *batch) takeAll(list []runtime.Launch) error {
	for i := 0; i < len(list); i++ {
		b.launch = i
		if list[i].Chain == nil {
			if err := b.take(&list[i]); err != nil {
				return err
			}
			continue
		}
		n := list[i].Chain.N
		if err := b.chain(list[i : i+n]); err != nil {
			return err
		}
		i += n - 1
	}
	return b.submit()
}

// take adds the dispatches of a launch, and counts it. If the launch is invalid, the launches
// before it are submitted.
func (b *batch) take(l *runtime.Launch) error {
	switch settle := b.mustSettle(l); {
	case settle && b.dev.skips:
		b.heed()
	case settle || len(b.dispatches) >= maxDispatches:
		if err := b.submit(); err != nil {
			return err
		}
	}
	done := len(b.dispatches)
	if b.keep != nil {
		b.begins = append(b.begins, done)
	}
	if err := b.add(l); err != nil {
		b.dispatches = b.dispatches[:done]
		if e := b.submit(); e != nil {
			return e
		}
		return &runtime.LaunchError{Index: b.launch, Err: err}
	}
	b.note(l)
	r, w := codegen.Traffic(l.Prog.(*program).kernel, l, &b.dev.caps.ElemSize)
	b.work = work{b.work.launches + 1, b.work.read + r, b.work.written + w}
	return nil
}

// Memory for the intermediate results of a chain: small compared with the full results, since a GPU
// then reads less from memory than it computes, and enough to keep it busy. Hardware needs several
// points of the outer dims at a time to be busy.
const (
	chainBytes = 16 << 20
	chainWide  = 64 << 20
)

// chain takes the launches of a chain tile by tile.
func (b *batch) chain(ls []runtime.Launch) error {
	c, budget := ls[0].Chain, int64(chainBytes)
	if !b.dev.limits.software {
		all := int64(0)
		for _, n := range c.Local {
			all += n * points(ls[0].Dims[:c.Lead])
		}
		budget = min(chainWide, all/2) // never all of it
		c = c.Wider(ls, budget)
	}
	rows := c.Rows(ls, budget)
	local := make([]runtime.Buffer, len(c.Local))
	for i, n := range c.Local {
		var err error
		if local[i], err = b.alloc(n * rows); err != nil {
			return &runtime.LaunchError{Index: b.launch, Err: err}
		}
	}
	into := c.NewTile(ls)
	for tile := range c.Tiles(ls, rows) {
		c.Tile(ls, tile, rows, local, into)
		for i := range into {
			if err := b.take(&into[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// add checks a launch and cuts it into dispatches.
func (b *batch) add(l *runtime.Launch) error {
	p, ok := l.Prog.(*program)
	if !ok || p.dev != b.dev {
		return b.dev.errorf("the program belongs to another device")
	}
	k := p.kernel
	if len(l.Args) != len(k.Operands) || len(l.Scalars) != len(k.Scalars) {
		return b.dev.errorf("a launch has %d args and %d scalars, the kernel %d operands and %d scalars", len(l.Args), len(l.Scalars), len(k.Operands), len(k.Scalars))
	}
	if l.Rank < 0 || l.Rank > runtime.MaxRank || l.Kept < 0 || l.Kept > l.Rank || !k.HasRows() && l.Kept != l.Rank {
		return b.dev.errorf("a launch of this kernel cannot have rank %d and %d kept dims", l.Rank, l.Kept)
	}
	for i := range l.Args {
		if k.Operands[i].Kind == codegen.Index {
			continue
		}
		if _, err := b.dev.memory.own(l.Args[i].Buf); err != nil {
			return fmt.Errorf("operand %d: %w", i, err)
		}
	}
	return b.split.launch(p.ready, l)
}

// emit makes a dispatch of a piece.
func (b *batch) emit(k *codegen.Kernel, pc *piece) error {
	p := pc.launch.Prog.(*program)
	v, err := p.variantFor(b, pc)
	if err != nil {
		return err
	}
	b.ran(v, func() string { return shader.NoteKey(p.kernel, &v.Variant) })
	at := len(b.words)
	words, grid, err := v.Pack(b.words, k, &pc.launch)
	if err != nil {
		return b.dev.errorf("%w", err)
	}
	faults := v.Faults() > 0
	if faults {
		words[at+v.FaultWord(k)] = b.faultWords(v, pc)
	}
	b.dispatch(v.pipe, words, at, pc.windows, faults, grid)
	return nil
}

// use holds a shader until the batch is submitted.
func (b *batch) use(sh *compiled) {
	if !slices.Contains(b.uses, sh) {
		b.dev.shaders.use(sh)
		b.uses = append(b.uses, sh)
	}
}

// ran notes and stores a new shader, unless it is only tried.
func (b *batch) ran(v *variant, key func() string) {
	if !b.trial && !v.told.Load() {
		b.dev.notes.note(v, key)
		b.dev.keep(v.source, v.compiled)
	}
}

// sort makes a dispatch of the device from a dispatch of a sort.
func (b *batch) sort(x sortDispatch) error {
	p := x.prog.(*program)
	v, err := p.variant(b, x.NoteKey(), func() (*variant, error) {
		source, bindings, err := x.Print(b.dev.lang)
		return &variant{Variant: shader.Variant{Bindings: bindings}, source: source}, err
	})
	if err != nil {
		return err
	}
	b.ran(v, x.NoteKey)
	per := int64(shader.SortGroup)
	if x.Step == shader.SortLocal {
		per = 1
	}
	grid := shader.GridOf((x.threads + per - 1) / per)
	x.words.Count, x.words.Width = uint32(x.threads), grid.X*uint32(per)
	b.dispatch(v.pipe, x.words.Pack(b.words), len(b.words), x.windows, false, grid)
	return nil
}

// dispatch appends a dispatch whose words start at at. With faults, a binding of faults follows its
// windows.
func (b *batch) dispatch(pipe Pipeline, words []uint32, at int, windows []window, faults bool, grid shader.Grid) {
	size := int64(len(words)-at) * 4
	for len(words)*4%int(b.dev.limits.align) != 0 {
		words = append(words, 0)
	}
	b.words = words
	bind := make([]Range, len(windows), len(windows)+2)
	for i, w := range windows {
		bind[i] = Range{Buf: w.buf.(*buffer).mem, Off: w.off, Size: w.size}
	}
	// The buffers of faults and of words are known after all dispatches are added.
	if faults {
		bind = append(bind, Range{})
	}
	bind = append(bind, Range{Off: int64(at) * 4, Size: size})
	x := Dispatch{Pipe: pipe, Bind: bind, Groups: [3]uint32{grid.X, grid.Y, 1}}
	if b.heeded > 0 {
		x.Unless.Size = shader.FaultWords * 4
		x.Look, b.look = b.look, false
	}
	b.dispatches = append(b.dispatches, x)
}

// submit sends the added dispatches, and waits for them if an index may be out of range.
func (b *batch) submit() error {
	if len(b.dispatches) == 0 {
		return nil
	}
	send := b.send
	if b.keep != nil {
		send = b.keep
	}
	if err := send(); err != nil {
		return err
	}
	b.dispatches, b.begins, b.words = b.dispatches[:0], b.begins[:0], b.words[:0]
	switch {
	case b.keep != nil:
		b.slots, b.reads, b.heeded, b.look = nil, nil, 0, false
		return nil
	case len(b.slots) > 0:
		return b.settle()
	}
	return b.dev.relax()
}

// relax waits if too many submissions are pending.
func (d *Runner) relax() error {
	if d.gpu.Backlog() > maxBacklog {
		return d.deviceError(d.gpu.Wait())
	}
	return nil
}

// send is the part of submit that runs for one batch at a time.
func (b *batch) send() error {
	d := b.dev
	data := b.data()
	d.mu.Lock()
	defer d.mu.Unlock()
	params, sent, err := d.params.hold(d, data)
	if err != nil {
		return err
	}
	if err := b.clearFaults(); err != nil {
		return err
	}
	bind(b.dispatches, params, Range{Buf: b.faults, Size: faultBytes(b.slots)})
	if sent {
		data = nil
	}
	if err := d.gpu.Submit(b.dispatches, params, data); err != nil {
		d.params.forget()
		d.memory.relieve(err) // the executed part is unknown: the caller that runs it again finds memory
		return d.deviceError(err)
	}
	return nil
}

// data is the batch's run-time words as bytes.
func (b *batch) data() []byte {
	data := make([]byte, len(b.words)*4)
	for i, w := range b.words {
		binary.LittleEndian.PutUint32(data[i*4:], w)
	}
	return data
}

// bind gives dispatches the buffers of words and of faults.
func bind(list []Dispatch, params Buffer, faults Range) {
	for i := range list {
		bind := list[i].Bind
		bind[len(bind)-1].Buf = params
		if f := len(bind) - 2; f >= 0 && bind[f].Buf == nil {
			bind[f] = faults
		}
		if list[i].Unless.Size > 0 {
			list[i].Unless.Buf = faults.Buf
		}
	}
}

// kept are buffers of run-time words, the most recently used first. A loop sends the same words
// each time, and writing them costs as much as a submission.
type kept [8]struct {
	buf  Buffer
	sent []byte
}

// hold finds the buffer that contains data, or one to write it to. Earlier submissions still read
// the old contents.
func (k *kept) hold(d *Runner, data []byte) (buf Buffer, sent bool, err error) {
	at := len(k) - 1
	for i := range k {
		if sent = k[i].buf != nil && bytes.Equal(k[i].sent, data); sent || k[i].buf == nil {
			at = i
			break
		}
	}
	x := k[at]
	if !sent {
		if err := d.grow(&x.buf, int64(len(data)), Uniform); err != nil {
			k[at].buf, k[at].sent = nil, nil
			return nil, false, err
		}
		x.sent = data
	}
	copy(k[1:at+1], k[:at])
	k[0] = x
	return x.buf, sent, nil
}

// forget marks words that may not have been written.
func (k *kept) forget() { k[0].sent = nil }

// grow makes a buffer of the device hold n bytes; its contents are lost. The old buffer stays alive
// while submitted work uses it.
func (d *Runner) grow(buf *Buffer, n int64, use Use) error {
	if *buf != nil && (*buf).Size() >= n {
		return nil
	}
	if *buf != nil {
		d.memory.dropWords(*buf)
		*buf = nil
	}
	fresh, err := d.memory.makeWords(max(2*n, 1<<14), use)
	if err == nil {
		*buf = fresh
	}
	return err
}

func (b *batch) alloc(n int64) (runtime.Buffer, error) {
	buf, err := b.dev.memory.alloc(n)
	if err != nil {
		return nil, err
	}
	b.scratch = append(b.scratch, buf)
	return buf, nil
}

// release pools the scratch memory: its next user comes later in the queue. Shaders may be
// released, too, because they are submitted.
func (b *batch) release() {
	for _, s := range b.scratch {
		b.dev.memory.free(s)
	}
	b.dev.shaders.drop(b.uses...)
	b.leaveFaults() // if nothing was settled
	words := b.words[:0]
	b.dev.words.Put(&words) // and not the batch with it
}

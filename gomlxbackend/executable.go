package gomlxbackend

import (
	"slices"
	"sync/atomic"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/hostapi"
	"github.com/pkg/errors"
)

// program is a function's graph, ready to run.
type program struct {
	params  []*Node // the parts of complex ones, and captured values behind them
	outputs []*Node
	steps   []step
	slots   int // of values
}

// step is a node that is needed, in a program.
type step struct {
	node *Node
	site string // what errors call it
	in   []int  // slots
	out  int
	last []int // slots that no later step reads and no output is
}

// compileProgram leaves out nodes that no output needs, and finds out when a
// value is read for the last time.
func compileProgram(f *Function, outputs []*Node) *program {
	needed := make([]bool, len(f.nodes))
	p := &program{params: slices.Concat(apart(f.params), f.captures), outputs: apart(outputs), slots: len(f.nodes)}
	for _, n := range p.outputs {
		needed[n.id] = true
	}
	// Operands come before what uses them.
	for _, n := range slices.Backward(f.nodes) {
		if needed[n.id] {
			for _, in := range n.in {
				needed[in.id] = true
			}
		}
	}
	readAfter := make([]bool, len(f.nodes))
	for _, n := range p.outputs {
		readAfter[n.id] = true
	}
	if f.name != compute.MainName {
		for _, n := range p.params {
			readAfter[n.id] = true // by the caller
		}
	}
	for _, n := range slices.Backward(f.nodes) {
		if !needed[n.id] || n.do == nil && n.doMany == nil && n.constant == nil {
			continue // a parameter, or a result of a node with several
		}
		s := step{node: n, site: n.site(), out: n.id}
		for _, in := range n.in {
			s.in = append(s.in, in.id)
			if !readAfter[in.id] {
				readAfter[in.id] = true
				s.last = append(s.last, in.id)
			}
		}
		for _, n := range n.results {
			if !readAfter[n.id] {
				s.last = append(s.last, n.id)
			}
		}
		p.steps = append(p.steps, s)
	}
	slices.Reverse(p.steps)
	return p
}

// run is one pass over a program. What it records belongs to the scope.
type run struct {
	backend *Backend
	sc      *millrace.Scope
	temps   []*millrace.Tensor // what the step at hand made on the way
	site    string             // of the step at hand
	err     error              // why it cannot go on
}

// temp notes an intermediate of a step, which is released behind it.
func (r *run) temp(t *millrace.Tensor) *millrace.Tensor {
	r.temps = append(r.temps, t)
	return t
}

// record records a program on arguments that belong to the scope. Those of main
// are released when they are read for the last time. The results may be
// arguments, and the same tensor several times.
func (r *run) record(p *program, args []*millrace.Tensor) []*millrace.Tensor {
	values := make([]*millrace.Tensor, p.slots)
	for i, n := range p.params {
		values[n.id] = args[i]
	}
	for _, s := range p.steps {
		if r.err != nil {
			break
		}
		if s.node.constant != nil {
			values[s.out] = s.node.constant.To(r.sc)
			continue
		}
		r.at(s.site)
		in := make([]*millrace.Tensor, len(s.in))
		for i, id := range s.in {
			in[i] = values[id]
		}
		if s.node.doMany != nil {
			for i, t := range s.node.doMany(r, in) {
				values[s.node.results[i].id] = t
				r.check(s.node, in, t)
			}
		} else {
			values[s.out] = s.node.do(r, in)
			r.check(s.node, in, values[s.out])
		}
		for _, t := range r.temps {
			t.Release()
		}
		r.temps = r.temps[:0]
		for _, id := range s.last {
			values[id].Release()
		}
	}
	outs := make([]*millrace.Tensor, len(p.outputs))
	for i, n := range p.outputs {
		outs[i] = values[n.id]
	}
	return outs
}

// check names the op of a result that carries an error, unless an operand of it does: then
// it is not the op's.
func (r *run) check(n *Node, in []*millrace.Tensor, result *millrace.Tensor) {
	err := result.Err()
	if err == nil || r.err != nil || slices.ContainsFunc(in, func(t *millrace.Tensor) bool { return t.Err() != nil }) {
		return
	}
	r.err = errors.WithMessage(err, signature(n.op, n.in))
}

// dense is a result whose elements lie in memory as Go has them. A view may be
// an alias of an input, or of another result: it is copied, by the kernel that
// computes what it is a view of where there is one.
func (r *run) dense(n *Node, t *millrace.Tensor) *millrace.Tensor {
	if !n.isView {
		return t
	}
	defer t.Release()
	return copyOf(r.sc, t)
}

// Executable is a compiled graph. It is safe for concurrent use.
type Executable struct {
	backend *Backend
	name    string
	prog    *program
	params  *parameters
	outputs []*Node // as they were returned
	rec     *millrace.Recording
	closed  atomic.Bool
	// constants of all functions, those that nothing needs too
	constants []*millrace.Tensor
}

var _ compute.Executable = (*Executable)(nil)

// newExecutable runs the graph that is the builder's main function now, and owns
// these constants.
func newExecutable(b *Builder, constants []*millrace.Tensor) *Executable {
	e := &Executable{backend: b.backend, name: b.name, prog: b.main.prog, params: parametersOf(b.main.params), outputs: b.main.outputs, constants: constants}
	e.rec = millrace.NewRecording(e.walk)
	return e
}

// Finalize gives the memory of constants back.
func (e *Executable) Finalize() {
	if e.closed.Swap(true) {
		return
	}
	for _, t := range e.constants {
		t.Release()
	}
	e.rec.Release()
}

// Inputs are the parameters' names and shapes.
func (e *Executable) Inputs() (names []string, inputs []shapes.Shape) {
	for _, n := range e.params.nodes {
		names, inputs = append(names, n.name), append(inputs, n.shape.Clone())
	}
	return names, inputs
}

// Outputs are the results' shapes.
func (e *Executable) Outputs() (outputs []shapes.Shape) {
	for _, n := range e.outputs {
		outputs = append(outputs, n.shape.Clone())
	}
	return outputs
}

// Execute runs the graph on the inputs and waits for its results. The first
// time it is recorded; unless it reads values on the way, it is not walked again.
// Inputs marked in donate are finalised, and their memory may become that of
// results; after an error that comes before anything ran they are as they were.
func (e *Executable) Execute(inputs []compute.Buffer, donate []bool, device compute.DeviceNum) ([]compute.Buffer, error) {
	var few [8]*content
	in, err := e.checkInputs(few[:0], inputs, donate, device)
	defer func() {
		for i := range in {
			inputs[i].(*Buffer).using.Add(-1)
		}
	}()
	if err != nil {
		return nil, errors.WithMessagef(err, "Execute of %q", e.name)
	}
	given := donate
	for i, d := range donate {
		if !d {
			continue
		}
		// Whoever takes the content out of the buffer may give it away.
		if buf := inputs[i].(*Buffer); !buf.c.CompareAndSwap(in[i], nil) {
			if slices.Index(in, in[i]) < i { // the same one, given twice
				given = slices.Clone(given)
				given[i] = false
				continue
			}
			putBack(inputs, in, in, given[:i])
			return nil, errors.Errorf("Execute of %q: input %d was finalized or donated meanwhile", e.name, i)
		}
	}
	outputs, err := e.execute(inputs, in, given)
	if err != nil {
		return nil, errors.WithMessagef(err, "Execute of %q", e.name)
	}
	return outputs, nil
}

// execute is Execute on contents, of which those given are out of their buffers.
func (e *Executable) execute(inputs []compute.Buffer, in []*content, given []bool) ([]compute.Buffer, error) {
	ready, err := e.onDevice(inputs, in)
	if err != nil {
		putBack(inputs, in, in, given)
		return nil, err
	}
	s := e.backend.stream()
	defer e.backend.giveBack(s)
	var room [8]*millrace.Tensor
	args, give := arguments(room[:0], in, ready, given)
	results, err := e.rec.RunWith(nil, millrace.RunOptions{On: s, Give: give}, args...)
	if e.closed.Load() { // meanwhile: what was recorded has the constants
		e.rec.Release()
	}
	if err != nil {
		putBack(inputs, in, ready, given)
		drop(in, ready)
		return nil, e.prog.named(err)
	}
	home := false
	for i, c := range in {
		home = home || c.home
		if c.room != nil && len(given) > 0 && given[i] {
			hostapi.Drop(c.room)
		}
	}
	outputs := make([]compute.Buffer, len(e.outputs))
	for i, n := range e.outputs {
		c, shape := content{t: results[0]}, n.shape
		if shape.IsDynamic() {
			shape = shapes.Make(shape.DType, c.t.Shape()...)
		}
		results = results[1:]
		if n.isComplex() {
			c.im, results = results[0], results[1:]
		}
		if home && err == nil {
			err = c.settle(s, e.backend, shape)
		}
		outputs[i] = e.backend.buffer(shape, c)
	}
	if err != nil {
		for _, buf := range outputs {
			_ = buf.Finalize() // which has no errors
		}
		return nil, err
	}
	return outputs, nil
}

// onDevice are contents with tensors: in, or where some have none, copies of
// those.
func (e *Executable) onDevice(inputs []compute.Buffer, in []*content) (ready []*content, err error) {
	ready = in
	for i, c := range in {
		if c.t != nil {
			continue
		}
		if &ready[0] == &in[0] {
			ready = slices.Clone(in)
		}
		if ready[i], err = c.onDevice(e.backend, inputs[i].(*Buffer).shape); err != nil {
			drop(in[:i], ready[:i])
			return nil, errors.WithMessagef(err, "input %d (%q)", i, e.params.nodes[i].name)
		}
	}
	return ready, nil
}

// drop gives up copies that onDevice made and nobody released.
func drop(in, ready []*content) {
	for i, c := range ready {
		if c != in[i] && c.alive() {
			c.drop()
		}
	}
}

// arguments are the tensors of inputs with the imaginary parts of complex ones
// behind the real ones, and whether they are given away, as copies of slices are.
// They are appended to room.
func arguments(room []*millrace.Tensor, in, ready []*content, given []bool) (args []*millrace.Tensor, give []bool) {
	args = room
	plain := true
	for i, c := range ready {
		plain = plain && c.im == nil && c == in[i]
		args = append(args, c.t)
	}
	if plain {
		return args, given
	}
	args = room
	for i, c := range ready {
		g := c != in[i] || len(given) > 0 && given[i]
		args, give = append(args, c.t), append(give, g)
		if c.im != nil {
			args, give = append(args, c.im), append(give, g)
		}
	}
	return args, give
}

// putBack gives buffers the contents again that were taken out of them and were not
// released: nothing has run.
func putBack(inputs []compute.Buffer, in, ready []*content, given []bool) {
	for i, g := range given {
		if g && (ready[i].t == nil || ready[i].alive()) {
			inputs[i].(*Buffer).c.CompareAndSwap(nil, in[i])
		}
	}
}

// walk records the graph on arguments that belong to the scope.
func (e *Executable) walk(sc *millrace.Scope, args []*millrace.Tensor) ([]*millrace.Tensor, error) {
	r := &run{backend: e.backend, sc: sc}
	defer r.at("")
	outs := r.record(e.prog, args)
	if r.err != nil {
		return nil, r.err
	}
	for i, n := range e.prog.outputs {
		if first := slices.Index(e.prog.outputs, n); first < i {
			outs[i] = outs[first]
			continue
		}
		outs[i] = r.dense(n, outs[i])
		if got := outs[i].Shape(); outs[i].Err() == nil && !slices.Equal(got, n.shape.Dimensions) {
			return nil, errors.Errorf("result %d, of op %s, is of shape %v and not %s", i, n.op, got, n.shape)
		}
	}
	return outs, nil
}

// checkInputs appends the inputs' contents, or says why they do not fit. The
// buffers of those that it gives are in use, also with an error.
func (e *Executable) checkInputs(contents []*content, inputs []compute.Buffer, donate []bool, device compute.DeviceNum) ([]*content, error) {
	switch {
	case e.closed.Load():
		return contents, errors.New("the executable was finalized")
	case e.backend.closed.Load():
		return contents, errors.Errorf("backend %q was finalized", Name)
	case device != 0:
		return contents, errors.Errorf("backend %q has device 0 only, not %d", Name, device)
	case len(donate) != 0 && len(donate) != len(inputs):
		return contents, errors.Errorf("%d donations were given for %d inputs", len(donate), len(inputs))
	}
	if err := e.params.check(inputs); err != nil {
		return contents, err
	}
	for i, in := range inputs {
		buf := in.(*Buffer)
		if buf.backend != e.backend {
			return contents, errors.Errorf("input %d (%q) is a buffer of another backend", i, e.params.nodes[i].name)
		}
		buf.using.Add(1)
		c, err := buf.content("Execute")
		contents = append(contents, c)
		if err != nil {
			return contents, errors.WithMessagef(err, "input %d (%q)", i, e.params.nodes[i].name)
		}
	}
	return contents, nil
}

package onnx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// Opsets of the default domain that this package knows.
const (
	minOpset = 7
	maxOpset = 24
)

// ErrFormat is in errors about files that are not valid models.
var ErrFormat = errors.New("not a valid ONNX model")

// Model is a model that can run. It is safe for concurrent use, except for changes of its
// parameters.
type Model struct {
	name   string
	place  millrace.Place
	graph  *graph
	params []nn.Named
	reads  atomic.Int64
	runs   atomic.Int64
}

// Open reads a model from a file, with its weights on the default device.
//
// Data outside of the file must be in files of the same folder or below it. They are read straight
// to the device. All faults of the model are in one error: operators that this package does not
// know, with their nodes and domains, invalid weights, and names without a value.
func Open(file string) (*Model, error) {
	d, err := millrace.Default()
	if err != nil {
		return nil, err
	}
	return OpenOn(d, file)
}

// OpenOn is Open with a place for the weights. The model runs in that place. It must not be a scope
// that ends before the model's last run.
func OpenOn(p millrace.Place, file string) (*Model, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("onnx: %w", err)
	}
	s, err := folder(filepath.Dir(file))
	if err != nil {
		return nil, fmt.Errorf("onnx: %w", err)
	}
	defer s.close()
	return open(p, file, data, s)
}

// New reads a model from its bytes, such as an embedded file. The model cannot have data outside.
func New(p millrace.Place, data []byte) (*Model, error) { return open(p, "model", data, &storage{}) }

// Read is New for size bytes of a reader.
func Read(p millrace.Place, r io.ReaderAt, size int64) (*Model, error) {
	data, err := io.ReadAll(io.NewSectionReader(r, 0, size))
	if err == nil && int64(len(data)) != size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("onnx: model: %w", err)
	}
	return New(p, data)
}

func open(p millrace.Place, name string, data []byte, s *storage) (*Model, error) {
	proto, err := decode(data, modelFields, 0)
	if err == nil && proto.graph == nil {
		err = errNoGraph
	}
	if err == nil && len(proto.opsets) == 0 {
		err = errors.New("the file names no opset")
	}
	if err != nil {
		return nil, fmt.Errorf("onnx: %s: %w: %w", name, ErrFormat, err)
	}
	m := &Model{name: name, place: p}
	b := &builder{
		m: m, store: s,
		functions: map[functionKey]*protoFunction{}, made: map[functionKey]*function{},
		open: map[functionKey]bool{}, missing: map[string]bool{},
	}
	for _, f := range proto.functions {
		b.functions[functionKey{domainOf(f.domain), f.name, f.overload}] = f
	}
	m.graph = b.graph(proto.graph, b.opsets(proto.opsets), nil, "")
	if len(b.bad) > 0 {
		for _, p := range m.params {
			p.Tensor().Release()
		}
		return nil, fmt.Errorf("onnx: %s: %w", name, errors.Join(b.bad...))
	}
	return m, nil
}

// Inputs are the names of the inputs that Run needs.
func (m *Model) Inputs() []string {
	var names []string
	for _, in := range m.graph.inputs {
		names = append(names, in.name)
	}
	return names
}

// Outputs are the names of the results of Run.
func (m *Model) Outputs() []string { return append([]string(nil), m.graph.outputs...) }

// State lists the model's weights: its initializers of floats with at least one dimension. It makes
// a Model a module for package nn, so that nn.Params, nn.Save and optimisers find them.
func (m *Model) State() []nn.Named { return append([]nn.Named(nil), m.params...) }

// Stats counts what a model has done.
type Stats struct {
	Runs  int64 // calls of Run and Forward
	Reads int64 // values that were read from the device because a shape or a branch depends on them
}

// Stats returns the counts since the model was opened.
func (m *Model) Stats() Stats { return Stats{m.runs.Load(), m.reads.Load()} }

// Run computes the outputs. The inputs' names are those of [Model.Inputs]; any size is valid where
// the model does not fix it. A missing or unknown name, another dtype and a shape that contradicts
// the model are errors.
//
// As with other ops, the outputs are computed when they are needed. Values that decide about shapes
// or control flow are read on the way, and ctx ends that.
func (m *Model) Run(ctx context.Context, in map[string]*millrace.Tensor) (map[string]*millrace.Tensor, error) {
	var out map[string]*millrace.Tensor
	err := scoped(m.place, func(sc *millrace.Scope) error {
		r := &run{m: m, ctx: ctx, place: sc, scope: sc}
		var err error
		out, err = r.model(in)
		return err
	})
	return out, err
}

// Forward is Run as a part of a forward pass of package nn: with c's handles of the weights, so that
// gradients reach them. Values on which shapes or branches depend have no gradient.
func (m *Model) Forward(c *nn.Ctx, in map[string]*millrace.Tensor) (map[string]*millrace.Tensor, error) {
	r := &run{m: m, ctx: context.Background(), place: m.place, pass: c}
	return r.model(in)
}

// scoped calls f with a scope in a place.
func scoped(p millrace.Place, f func(sc *millrace.Scope) error) error {
	switch p := p.(type) {
	case *millrace.Device:
		return p.Scope(f)
	case *millrace.Stream:
		return p.Scope(f)
	case *millrace.Scope:
		return p.Scope(f)
	}
	return errors.New("onnx: the model's place is nil")
}

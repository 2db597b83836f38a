package progen

import (
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// Config restricts programs. The zero value allows every basic op on
// tensors of basic dtypes.
type Config struct {
	Ops      int                                           // tensor ops per program; 0: about 20
	MaxElems int                                           // elements per tensor; 0: 5000
	DTypes   ir.DTypeSet                                   // of tensors; 0: Basic
	Allow    func(op ir.Op, operand, result ir.DType) bool // nil: every op
	Groups   Group                                         // ops beyond the basic ones
}

// Basic are the default dtypes of programs.
var Basic = ir.SetOf(ir.Bool, ir.Uint8, ir.Int32, ir.Int64, ir.Float32, ir.Float64)

func (c Config) withDefaults() Config {
	if c.Ops == 0 {
		c.Ops = 20
	}
	if c.MaxElems == 0 {
		c.MaxElems = 5000
	}
	if c.DTypes == 0 {
		c.DTypes = Basic
	}
	return c
}

// New makes the program of a seed: the same one for the same seed, Config and op table. It has at
// least one output and verifies.
func New(seed uint64, c Config) *ir.Graph {
	return generate(newSeeded(seed, 1), c.withDefaults())
}

// FromBytes makes a program whose choices are read from data.
func FromBytes(data []byte, c Config) *ir.Graph {
	return generate(&bytesSource{data}, c.withDefaults())
}

// Inputs makes values for the inputs of a program, a buffer each as [ir.EvalGraph] takes them. An
// input's values depend only on the seed, its number and its type, so a shrunk program keeps its
// values.
func Inputs(p *ir.Graph, seed uint64) [][]byte { return inputs(p, seed, value) }

// TinyInputs are inputs with many numbers that are denormal, or give denormal results.
func TinyInputs(p *ir.Graph, seed uint64) [][]byte { return inputs(p, seed, tiny) }

func inputs(p *ir.Graph, seed uint64, value func(source, ir.DType) uint64) [][]byte {
	bufs := make([][]byte, len(p.Inputs))
	for i, t := range p.Inputs {
		s := newSeeded(seed, uint64(i)+2)
		d := ir.NewDense(t)
		for j := range t.Shape.Elems() {
			d.Set(j, value(s, t.DT))
		}
		bufs[i] = d.Data
	}
	return bufs
}

// generator grows one program.
type generator struct {
	source
	Config
	p    *ir.Graph
	live []tensor // not released, oldest first
	next int      // id of the next tensor
	main ir.DType // dtype of most tensors, which makes operands compatible
}

// tensor is a tensor that ops may still use. Programs consist of a few chains that rarely meet,
// because interleaved independent work is difficult for fusion.
type tensor struct {
	id    int
	typ   ir.TensorType
	chain int
	used  bool
}

func generate(s source, c Config) *ir.Graph {
	g := &generator{source: s, Config: c, p: &ir.Graph{}}
	if g.main = ir.Float32; chance(s, 50) {
		g.main, _ = g.dtype(ir.AllDTypes)
	}
	base := g.shape()
	chains := 1 + g.intn(3)
	for i := range 1 + g.intn(4) {
		dt, ok := g.dtype(ir.AllDTypes)
		if !ok {
			break
		}
		t := ir.TensorType{DT: dt, Shape: base}
		if i > 0 {
			t.Shape = g.related(base)
		}
		g.p.Inputs = append(g.p.Inputs, t)
		g.add(t, i%chains)
	}
	for made, tries := 0, 0; made < c.Ops && tries < 40*c.Ops; tries++ {
		if g.step(g.intn(chains)) {
			made++
		}
	}
	g.outputs()
	return g.p
}

func (g *generator) add(t ir.TensorType, chain int) {
	g.live = append(g.live, tensor{id: g.next, typ: t, chain: chain})
	g.next++
}

// dtype picks a tensor dtype of a set: half the time the program's main one.
func (g *generator) dtype(from ir.DTypeSet) (ir.DType, bool) {
	if from.Has(g.main) && g.DTypes.Has(g.main) && chance(g.source, 50) {
		return g.main, true
	}
	var ds []ir.DType
	for d := ir.Bool; d < ir.NumDTypes; d++ {
		if d.Tensor() && from.Has(d) && g.DTypes.Has(d) {
			ds = append(ds, d)
		}
	}
	if len(ds) == 0 {
		return ir.Invalid, false
	}
	return pick(g.source, ds), true
}

// operand picks a live tensor that ok allows: mostly of the chain, mostly a recent one. It returns
// its index in live, or -1.
func (g *generator) operand(chain int, ok func(t *tensor) bool) int {
	var own, any []int
	for i := range g.live {
		if t := &g.live[i]; ok(t) {
			any = append(any, i)
			if t.chain == chain {
				own = append(own, i)
			}
		}
	}
	if len(own) > 0 && !chance(g.source, 10) {
		any = own
	}
	if len(any) == 0 {
		return -1
	}
	if n := len(any); n > 3 && !chance(g.source, 30) {
		any = any[n-3:]
	}
	return pick(g.source, any)
}

// classes are the probabilities of kinds of ops, in percent.
var classes = []struct {
	class   ir.Class
	percent int
}{
	{ir.ClassElementwise, 62},
	{ir.ClassView, 18},
	{ir.ClassReduce, 8},
	{ir.ClassCreate, 6},
	{ir.ClassMark, 6},
}

// opsOf are the basic ops of a class.
var opsOf = func() map[ir.Class][]ir.Op {
	m := map[ir.Class][]ir.Op{}
	for op := ir.Op(1); op < ir.NumOps; op++ {
		if op.String() != "" && basic(op) {
			m[op.Class()] = append(m[op.Class()], op)
		}
	}
	return m
}()

// joining are the elementwise ops of several operands: they are fewer than those of one, but turn a
// chain into a graph.
var joining = slices.DeleteFunc(slices.Clone(opsOf[ir.ClassElementwise]), func(op ir.Op) bool { return op.Info().Arity < 2 })

// step tries to append one op. Infer finally decides whether the choices fit.
func (g *generator) step(chain int) bool {
	if g.Groups != 0 && chance(g.source, 30) {
		return g.grouped(chain)
	}
	class, r := ir.ClassElementwise, g.intn(100)
	for _, c := range classes {
		if r < c.percent {
			class = c.class
			break
		}
		r -= c.percent
	}
	op := pick(g.source, opsOf[class])
	if class == ir.ClassElementwise && chance(g.source, 55) {
		op = pick(g.source, joining)
	}
	switch class {
	case ir.ClassElementwise:
		return g.elementwise(op, chain)
	case ir.ClassView:
		return g.view(op, chain)
	case ir.ClassReduce:
		return g.reduce(op, chain)
	case ir.ClassCreate:
		return g.create(op, chain)
	}
	return g.entry(op, chain)
}

// append infers the result of n and adds it. at are the live indices of its tensor operands.
func (g *generator) append(n ir.Node, operands []ir.Operand, chain int, at ...int) bool {
	dt, shape, err := ir.Infer(n.Op, n.Attr, n.DT, n.Shape, operands...)
	if err != nil || !g.DTypes.Has(dt) || shape.Elems() > g.MaxElems {
		return false
	}
	from := dt
	if len(at) > 0 {
		from = g.live[at[len(at)-1]].typ.DT
	}
	if g.Allow != nil && !g.Allow(n.Op, from, dt) {
		return false
	}
	for _, i := range at {
		g.live[i].used = true
	}
	n.DT, n.Shape = dt, shape
	g.p.Nodes = append(g.p.Nodes, n)
	g.add(ir.TensorType{DT: dt, Shape: shape}, chain)
	return true
}

func (g *generator) scalar(dt ir.DType) ir.Arg {
	g.p.Scalars = append(g.p.Scalars, ir.ScalarValue{DT: dt, Bits: value(g.source, dt)})
	return ir.S(len(g.p.Scalars) - 1)
}

func (g *generator) create(op ir.Op, chain int) bool {
	info := op.Info()
	dt, ok := g.dtype(info.In)
	if !ok {
		return false
	}
	n := ir.Node{Op: op, DT: dt, Shape: g.shape(), NArgs: uint8(info.Arity)}
	if len(g.live) > 0 && chance(g.source, 70) {
		n.Shape = g.related(pick(g.source, g.live).typ.Shape)
	}
	if !g.fits(n.Shape) || g.Allow != nil && !g.Allow(op, dt, dt) {
		return false
	}
	operands := make([]ir.Operand, info.Arity)
	for i := range operands {
		d := ir.ScalarDType(op, i, ir.Invalid, dt)
		n.Args[i] = g.scalar(d)
		operands[i] = ir.Operand{DT: d, Scalar: true}
	}
	return g.append(n, operands, chain)
}

// entry releases or keeps a tensor. One live tensor always stays.
func (g *generator) entry(op ir.Op, chain int) bool {
	x := g.operand(chain, func(t *tensor) bool { return op != ir.Release || t.used })
	if x < 0 || op == ir.Release && len(g.live) == 1 {
		return false
	}
	g.p.Nodes = append(g.p.Nodes, ir.Node{Op: op, NArgs: 1, Args: [3]ir.Arg{ir.T(g.live[x].id)}})
	if op == ir.Release {
		g.live = append(g.live[:x], g.live[x+1:]...)
	}
	return true
}

// outputs makes unused tensors outputs, and some of the others.
func (g *generator) outputs() {
	for i := range g.live {
		if !g.live[i].used || chance(g.source, 20) {
			g.p.Outputs = append(g.p.Outputs, g.live[i].id)
		}
	}
	if len(g.p.Outputs) == 0 && len(g.live) > 0 {
		g.p.Outputs = append(g.p.Outputs, g.live[len(g.live)-1].id)
	}
}

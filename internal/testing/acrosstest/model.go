package acrosstest

import (
	"math/rand/v2"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

// Model is a kind of training. Every rank can make all of it from the Model alone.
type Model struct {
	Name    string
	Leaves  int            // of the whole batch
	Steps   int            // runs
	Parts   int            // runs for each update; 0: 1
	Compute millrace.DType // in which layers compute; Invalid: that of their weights
	Wire    millrace.DType // in which gradients are sent; Invalid: their own
	Whole   bool           // the rule's state cannot be divided among ranks
	New     func(at millrace.Place) *Training
	Batch   func(step int) Batch        // of all ranks
	Before  func(t *Training, step int) // called before each run; may be nil
	Ranks   []int                       // numbers of ranks that give one digest; nil: 1, 2, 4

	// Cut is in place of Bounds, for a program that divides batches itself; results then depend on the
	// number of ranks. May be nil.
	Cut func(step, rows, ranks int) []int
}

// bounds are the first rows of ranks in a step's batch, and their end.
func (m Model) bounds(step, rows, ranks int) []int {
	if m.Cut != nil {
		return m.Cut(step, rows, ranks)
	}
	return Bounds(rows, ranks)
}

// Sizes are the numbers of ranks to run the model with.
func (m Model) Sizes() []int {
	if m.Ranks == nil {
		return []int{1, 2, 4}
	}
	return m.Ranks
}

// Training is a model with its optimiser, on one rank.
type Training struct {
	Params    []nn.Named // weights and buffers
	Optimizer *optim.Optimizer
	Random    *nn.Random // nil: the loss draws nothing
	Loss      func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor
}

// State makes the weights and buffers a part of a file.
func (t *Training) State() []nn.Named { return t.Params }

// Find returns the parameter of a name, or nil.
func (t *Training) Find(name string) *nn.Param {
	for _, p := range t.Params {
		if p.Name == name {
			return p.Param
		}
	}
	return nil
}

// Batch is the inputs of a run.
type Batch struct {
	Rows int
	In   []Array
}

// Array is an input: float32 or int32 numbers, by rows of one shape.
type Array struct {
	Row    []int
	Floats []float32
	Ints   []int32
	Shared bool // it is one number, the same for all rows
}

// Tensors makes the inputs for a range of rows.
func (b Batch) Tensors(at millrace.Place, from, to int) []*millrace.Tensor {
	var list []*millrace.Tensor
	for _, a := range b.In {
		list = append(list, a.tensor(at, from, to))
	}
	return list
}

func (a Array) tensor(at millrace.Place, from, to int) *millrace.Tensor {
	size := 1
	for _, d := range a.Row {
		size *= d
	}
	if a.Shared {
		return millrace.ScalarOn(at, a.Floats[0])
	}
	shape := append([]int{to - from}, a.Row...)
	if a.Ints != nil {
		return millrace.FromSliceOn(at, a.Ints[from*size:to*size], shape...)
	}
	return millrace.FromSliceOn(at, a.Floats[from*size:to*size], shape...)
}

// Bounds divides n rows as data.Options says: an even number of parts is half as many, each cut in
// halves; an odd number k of parts begins at i·n/k.
func Bounds(n, parts int) []int {
	at := []int{0}
	if parts%2 == 1 {
		for i := range parts {
			at = append(at, n*(i+1)/parts)
		}
		return at
	}
	halves := Bounds(n, parts/2)
	for i, from := range halves[:len(halves)-1] {
		to := halves[i+1]
		at = append(at, from+(to-from)/2, to)
	}
	return at
}

// Numbers makes random numbers that depend on the seeds alone: they are spread evenly over [-1, 1).
func Numbers(a, b uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(a, b))
	list := make([]float32, n)
	for i := range list {
		list[i] = float32(r.IntN(1<<16))/(1<<15) - 1
	}
	return list
}

// Classes makes random integers below n.
func Classes(a, b uint64, n, count int) []int32 {
	r := rand.New(rand.NewPCG(a, b))
	list := make([]int32, count)
	for i := range list {
		list[i] = int32(r.IntN(n))
	}
	return list
}

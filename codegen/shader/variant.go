package shader

import (
	"strconv"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// Mode is the shape of a shader.
type Mode uint8

const (
	Map      Mode = iota // one invocation per point, or per vector of points
	Rows                 // one workgroup per row; its invocations share the row's points
	Cols                 // one invocation per row
	Tiles                // one workgroup per tile of a contraction's results
	Checks               // of a scatter: one invocation per point, which checks its index
	Scatters             // one invocation per row
)

// Variant is all that a shader's text depends on besides the kernel.
type Variant struct {
	Mode      Mode
	Rank      int  // dims of the domain, at least 1
	Kept      int  // number of kept dims; equal to Rank for Map
	Lanes     int  // points per step along the innermost dim: 1 or 4
	Across    bool // Cols: lanes are neighbouring rows, along the last kept dim
	Each      int  // Rows, Cols: neighbours along the last kept dim computed at once, if above 1; divides that dim
	Beside    int  // Rows: neighbouring rows per workgroup, along the last kept dim; neighbouring invocations have neighbouring rows; divides that dim
	Abreast   int  // Rows: rows per workgroup, if above 0; the invocations of a row are neighbours; the last workgroup may have fewer rows
	Cluster   int  // with Beside or Abreast: invocations of a subgroup that fold by shuffles, if above 1: see cluster.go
	Clustered bool // with Cluster and Abreast: by clustered operations where there are some
	Online    int  // Cols: a maximum and the sum of exponentials below it share a pass, by so many points at a time; divides the row
	Tail      bool // the last vector of a Map may end outside: its stores are guarded
	Ragged    bool // with Tail: each row along the innermost dim may end so; its last point replaces those outside. Rows: see ragged.go
	Subgroups bool // Rows: reductions and scans go over subgroups first
	Group     int  // invocations per workgroup
	Tile      Tile // of Tiles
	Unroll    int  // Rows: steps that cover a row and keep their loads for later passes; 0: a loop
	Steps     int  // Map: vectors or points that an invocation computes in a loop, if above 1
	Turn      int  // Map: 1 + the dim along which operands that are read across are contiguous; without Steps, by squares
	Exact     bool // the unrolled steps end with the row; each invocation of a Map has all of its Steps
	Args      []Arg
	Bindings  []Binding
}

// Arg describes an operand for a shader.
type Arg struct {
	Class   codegen.AccessClass // along the innermost dim
	Binding int                 // index of Bindings; -1 for index operands
	Vec     bool                // accessed by whole aligned vectors; its words count vectors
	Still   bool                // with Each: all neighbours read the same
	Stages  []int               // rank of each stage
	Turned  bool                // read through squares in workgroup memory
	Skip    bool                // outputs that this shader does not store
	Guard   uint32              // outputs: bit d set if only position 0 of dim d stores
	Indexed bool                // read, or written by a scatter, through an index
	Fault   bool                // an index out of range is a fault
	Parts   int                 // number of bindings, from Binding on, of an indexed operand, if above 1
	Part    uint32              // elements, or vectors, in each of them except the last
}

// Binding is one storage binding. Several operands may share it: a buffer that a dispatch both
// reads and writes must be bound once.
type Binding struct {
	Write bool
	DT    ir.DType // Invalid: operands of several dtypes share it
	Vec   bool     // an array of vectors
	Size  uint8    `json:",omitempty"` // bytes of an element, if they are narrower than a word; of the same number in all dtypes

	Faults bool // words that report indices out of range
}

// element is the type of the binding's elements in memory.
func (b Binding) element() string {
	if b.Size > 0 {
		return cells[b.Size]
	}
	return memTypes[b.DT]
}

// word is the type that a load of an element has, and a store takes. A narrow element is held in the
// low bits of a word, and the others are 0.
func (b Binding) word() string {
	if b.Size > 0 {
		return "u32"
	}
	return memTypes[b.DT]
}

// laneDim is the dim along which lanes are neighbours.
func (v *Variant) laneDim() int {
	if v.Across {
		return v.Kept - 1
	}
	return v.Rank - 1
}

// sharing is the number of invocations that share a row.
func (v *Variant) sharing() int { return v.Group / max(v.Beside, v.Abreast, 1) }

// Key distinguishes the variants of a kernel.
func (v *Variant) Key() string {
	b := make([]byte, 0, 128)
	num := func(n uint64) { b = append(strconv.AppendUint(b, n, 36), '.') }
	flag := func(f bool) {
		if f {
			b = append(b, '+')
		}
	}
	num(uint64(v.Mode))
	num(uint64(v.Rank))
	num(uint64(v.Kept))
	num(uint64(v.Lanes))
	num(uint64(v.Group))
	num(uint64(v.Unroll))
	num(uint64(v.Each))
	num(uint64(v.Beside))
	num(uint64(v.Abreast))
	num(uint64(v.Cluster))
	flag(v.Clustered)
	b = append(b, ' ')
	num(uint64(v.Steps))
	num(uint64(v.Turn))
	flag(v.Exact)
	b = append(b, ' ')
	flag(v.Across)
	b = append(b, ' ')
	flag(v.Subgroups)
	b = append(b, ' ')
	num(uint64(v.Online))
	b = append(b, ' ')
	if t := &v.Tile; v.Mode == Tiles {
		for _, n := range [...]int{t.M, t.N, t.K, t.RowsPer, t.ColsPer, t.MDims, t.NDims} {
			num(uint64(n))
		}
		flag(t.AlongA)
		b = append(b, ' ')
		flag(t.AlongB)
		b = append(b, ' ')
		flag(t.Looped)
		if t.WideA || t.WideB || t.Ahead {
			b = append(b, ' ')
			flag(t.WideA)
			b = append(b, ' ')
			flag(t.WideB)
			b = append(b, ' ')
			flag(t.Ahead)
		}
		if x := &t.Matrix; *x != (Matrix{}) {
			b = append(b, ' ')
			for _, n := range [...]int{x.M, x.N, x.K, x.Lanes, int(x.Of), x.Parts} {
				num(uint64(n))
			}
		}
	}
	flag(v.Tail)
	b = append(b, ' ')
	flag(v.Ragged)
	for _, a := range v.Args {
		b = append(b, '|')
		num(uint64(a.Class))
		num(uint64(a.Binding + 1))
		num(uint64(a.Guard))
		flag(a.Vec)
		b = append(b, ' ')
		flag(a.Still)
		b = append(b, ' ')
		flag(a.Turned)
		b = append(b, ' ')
		flag(a.Skip)
		for _, r := range a.Stages {
			num(uint64(r))
		}
		if a.Parts > 1 {
			b = append(b, ' ')
			num(uint64(a.Parts))
			num(uint64(a.Part))
		}
	}
	for _, x := range v.Bindings {
		b = append(b, '/')
		num(uint64(x.DT))
		flag(x.Write)
		b = append(b, ' ')
		flag(x.Vec)
		if x.Size > 0 {
			b = append(b, ' ')
			num(uint64(x.Size))
		}
	}
	return string(b)
}

// Dense is the variant for operands that are all dense in buffers of their own: over one dim, two
// if the kernel reduces, three if it contracts. Kernels are tried with it before any launch is
// known.
func Dense(k *codegen.Kernel, lanes int) Variant {
	v := Variant{Rank: 1, Kept: 1, Lanes: lanes, Group: 64}
	switch {
	case k.Scatter() != ir.None:
		v.Mode, v.Rank, v.Lanes, lanes = Scatters, 2, 1, 1
	case dotOf(k) >= 0:
		v.Mode, v.Rank, v.Kept, v.Lanes, lanes = Tiles, 3, 2, 1, 1
		v.Tile = Tile{M: 32, N: 32, K: 16, RowsPer: 4, ColsPer: 4, MDims: 1, NDims: 1}
		v.Group = v.Tile.Group()
	case k.HasRows():
		v.Mode, v.Rank = Rows, 2
	}
	for _, o := range k.Operands {
		if o.Kind == codegen.Index {
			v.Args = append(v.Args, Arg{Binding: -1})
			continue
		}
		a := Arg{Binding: len(v.Bindings), Vec: lanes > 1}
		if v.Mode == Tiles {
			a.Class = codegen.Strided
		}
		if o.Row && (v.Mode == Rows || v.Mode == Scatters) {
			a.Class, a.Vec = codegen.Splat, false
		}
		v.Args = append(v.Args, a)
		v.Bindings = append(v.Bindings, Binding{Write: o.Kind == codegen.Output, DT: o.DT, Vec: a.Vec})
	}
	v.Indexed(k)
	for i, a := range v.Args {
		if a.Indexed && a.Vec {
			v.Args[i].Vec, v.Bindings[a.Binding].Vec = false, false
		}
	}
	return v
}

// The words every shader starts with.
const (
	wordCount = iota // invocations of a Map or Cols, workgroups of Rows, rows of Rows with Abreast, that have work
	wordWidth        // invocations or workgroups per row of the dispatch grid
	wordInner        // elements along the innermost dim, for guarded stores
	wordSteps        // vectors (or points) of the reduced domain; of a Map with Steps: of the whole domain; with Turn: of that dim
	wordZero         // 0, which compilers cannot know
	wordDims         // dimWords words for each of Rank dims, the innermost in vectors
)

// dimWords are a dim, and the multiplier and shift that divide by it.
const dimWords = 3

// slots says where each run-time word is. Both the printer and Pack use it, so they always agree.
type slots struct {
	args    []argSlots
	scalars []int
	tile    tileSlots
	fault   int // see FaultWord
	total   int
}

type argSlots struct {
	offset int
	stride int // Rank words
	base   int // index operands: two words of the lowest position
	step   int // operands read through an index: distance from one element to the next
	size   int // and their number
	stages []stageSlots
}

type stageSlots struct{ offset, dims, stride int }

func (v *Variant) slots(k *codegen.Kernel) slots {
	var s slots
	n := wordDims + dimWords*v.Rank
	take := func(words int) int { n += words; return n - words }
	if v.Mode == Tiles {
		s.tile = tileSlots{take(1), take(1), take(dimWords), take(dimWords)}
	}
	for i, a := range v.Args {
		x := argSlots{offset: take(1), stride: take(v.Rank)}
		if k.Operands[i].Kind == codegen.Index {
			x.base = take(2)
		}
		if a.Indexed {
			x.step, x.size = take(1), take(1)
		}
		for _, rank := range a.Stages {
			x.stages = append(x.stages, stageSlots{take(1), take(dimWords * rank), take(rank)})
		}
		s.args = append(s.args, x)
	}
	for _, dt := range k.Scalars {
		words := 1
		if isWide(dt) {
			words = 2
		}
		s.scalars = append(s.scalars, take(words))
	}
	if v.Faults() > 0 {
		s.fault = take(1)
	}
	s.total = (n + 3) &^ 3
	return s
}

package optable

import (
	"slices"
	"strings"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // tests leave the user's cache alone
	"github.com/millrace-go/millrace/ir"
)

// T is an abbreviation.
type T = millrace.Tensor

// Op is the row of one public function or method. A column that does not apply is left out.
type Op struct {
	Name string // as package documentation has it: "Tensor.Exp", "Concat", "linalg.Solve"
	Func any    // the function, if it is not a method: it is called with zero values of all kinds

	MayBeNil bool // a nil operand is valid

	// How the op of ir is called. Every form is compared with ir's oracle, in every dtype, on
	// special values and in random programs. Forms are also called with operands of wrong dtypes,
	// and with operands that carry an error.
	IR       ir.Op
	Unary    func(x *T) *T
	Binary   Binary
	Position func(x *T, dt millrace.DType, axes ...int) *T

	// A call that docs/operations prints, with the dtypes and the gradient that it finds.
	Example    any    // func(o In) with results that are tensors
	Documented string // the dtypes, where calling cannot find them
	Quiet      bool   // the result is not printed: it is long
	OnMask     bool   // In's mask takes each dtype, not its tensors of numbers

	// References. Results are compared with them, on several devices.
	Math       *Math       // a function of one number
	Reductions []Reduction // of rows, to one number
	Alongs     []Along     // of rows, to rows
	Norms      []Norm      // compositions on rows, one kernel each
	Peers      []Peer      // results of NumPy, mpmath and PyTorch
	Kernels    []Kernel    // how many kernels the op becomes between others

	// Derivatives. They are compared with central differences, on the CPU and on GPUs.
	Domain []Operand // operands at which Unary or Binary is differentiated
	Grads  []Grad    // other calls
	Points []Point   // functions of autodiff/testdata, beside Unary and Binary
	Edges  []Edge    // derivatives at singular points, known exactly

	// Bad input.
	Bad     []Bad     // calls that fail
	Passes  []Pass    // calls that pass the error of an operand on
	Several []Several // calls with several results, which fail as separate handles
	Late    []Late    // calls whose operand has an error that only running finds
}

// Binary holds the ways to call an op with two operands: two tensors, a number on the right, a
// number on the left. The last two may be missing.
type Binary struct {
	Tensors     func(x, y *T) *T
	Right, Left func(x *T, s float64) *T
}

// A Group is a section of a page of docs/operations.
type Group struct {
	Page, Title string
	Ops         []Op
}

// Groups is the table.
var Groups = []Group{
	{"elementwise.md", "Arithmetic", arithmetic},
	{"elementwise.md", "Powers, exponentials, logarithms", powers},
	{"elementwise.md", "Trigonometry", trigonometry},
	{"elementwise.md", "Rounding and sign", rounding},
	{"elementwise.md", "Activations", activations},
	{"elementwise.md", "Comparisons", comparisons},
	{"elementwise.md", "Logic and bits", bits},
	{"elementwise.md", "Selection", selection},
	{"elementwise.md", "Conversion", conversion},
	{"reductions.md", "Reductions", reductions},
	{"reductions.md", "Statistics", statistics},
	{"reductions.md", "Normalisation", normalisation},
	{"reductions.md", "Scans", scans},
	{"reductions.md", "Sorts and selection", sorts},
	{"reductions.md", "Counts and values", counts},
	{"shapes.md", "Views", views},
	{"shapes.md", "Joining and repeating", joining},
	{"shapes.md", "By index", indices},
	{"contractions.md", "Matmul", matmul},
	{"contractions.md", "Convolutions", convolutions},
	{"contractions.md", "Windows", windows},
	{"contractions.md", "Transforms", transforms},
	{"contractions.md", "Linear algebra", linear},
	{"create.md", "From Go values", fromGo},
	{"create.md", "Filled", filled},
	{"create.md", "Random", random},
	{"create.md", "Places", places},
	{"reading.md", "Values", reads},
	{"reading.md", "Running", runs},
	{"reading.md", "Handles", handles},
}

// All are the rows of all groups.
func All() []Op {
	var all []Op
	for _, g := range Groups {
		all = append(all, g.Ops...)
	}
	return all
}

// Named is the row of a name; it panics if there is none.
func Named(name string) Op {
	all := All()
	if i := slices.IndexFunc(all, func(o Op) bool { return o.Name == name }); i >= 0 {
		return all[i]
	}
	panic("optable: no row " + name)
}

// Forms are the rows by the op of ir that they record.
func Forms() map[ir.Op]Op {
	m := map[ir.Op]Op{}
	for _, o := range All() {
		if o.IR != ir.OpInvalid {
			m[o.IR] = o
		}
	}
	return m
}

// word is the name in lower case, without the receiver: what errors and cases call the op.
func (o Op) word() string { return strings.ToLower(strings.TrimPrefix(o.Name, "Tensor.")) }

// byKind calls the method for bool tensors or the one for integers.
func byKind[F any](x *T, onBool, onInt F) F {
	if x.DType() == millrace.Bool {
		return onBool
	}
	return onInt
}

func logic(onBool, onInt func(x, y *T) *T) func(x, y *T) *T {
	return func(x, y *T) *T { return byKind(x, onBool, onInt)(x, y) }
}

// exceptBool is a form with a number that bool tensors lack: it gives nil for them.
func exceptBool(onInt func(x *T, s float64) *T) func(x *T, s float64) *T {
	return func(x *T, s float64) *T {
		if x.DType() == millrace.Bool {
			return nil
		}
		return onInt(x, s)
	}
}

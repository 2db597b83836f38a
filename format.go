package millrace

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// String runs the ops that t needs and prints its elements as NumPy does: aligned, with at most 8
// digits after the point, and in nested brackets. Of a tensor with more than 1000 elements it
// reads and prints only the ends of each dimension, with "..." for the middle. A tensor that
// carries an error, or was released, prints the error between < >. [PrintOptions] and the verbs
// of [Tensor.Format] print in other ways.
func (t *Tensor) String() string { return PrintOptions{}.Sprint(t) }

// texts has a function for each dtype that prints a tensor.
var texts = map[DType]func(t *Tensor, l layout) (string, error){
	Bool: func(t *Tensor, l layout) (string, error) {
		return textOf(t, l, boolCells, func(v bool) string { return strings.TrimSpace(boolCell(v)) })
	},
	Uint8: integers[uint8], Uint16: integers[uint16], Uint32: integers[uint32], Uint64: integers[uint64],
	Int8: integers[int8], Int16: integers[int16], Int32: integers[int32], Int64: integers[int64],
	Float32: func(t *Tensor, l layout) (string, error) {
		return textOf(t, l, func(vs []float32) func(float32) string { return floatCells(vs, Float32, l.Precision) }, func(v float32) string { return floatScalar(float64(v), Float32) })
	},
	Float64: func(t *Tensor, l layout) (string, error) {
		return textOf(t, l, func(vs []float64) func(float64) string { return floatCells(vs, Float64, l.Precision) }, func(v float64) string { return floatScalar(v, Float64) })
	},
	Float16: halves[F16], BFloat16: halves[BF16],
}

// integer lists the Go types of the integer dtypes.
type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

func integers[T integer](t *Tensor, l layout) (string, error) {
	return textOf(t, l, cells[T], plain[T])
}

// halves prints 16-bit floats in the layout of float32 numbers with fewer digits.
func halves[T interface {
	F16 | BF16
	Float32() float32
	String() string
}](t *Tensor, l layout) (string, error) {
	cells := func(vs []T) func(T) string {
		wide := make([]float32, len(vs))
		for i, v := range vs {
			wide[i] = v.Float32()
		}
		cell := floatCells(wide, t.DType(), l.Precision)
		return func(v T) string { return cell(v.Float32()) }
	}
	return textOf(t, l, cells, T.String)
}

// textOf prints a tensor. cells gets all elements that are shown and returns the function that
// prints one of them, so that they align. scalar prints the element of a 0-d tensor.
func textOf[T Element](t *Tensor, l layout, cells func([]T) func(T) string, scalar func(T) string) (string, error) {
	shape := t.shape()
	if l.verb != "" {
		cells, scalar = verbCells[T](l), func(v T) string { return verbCell(l, v) }
	}
	if len(shape) == 0 {
		v, err := Item[T](t)
		return scalar(v), err
	}
	if t.Len() == 0 {
		return "[]", t.Eval()
	}
	shown, vs, err := ends[T](t, l)
	if err != nil {
		return "", err
	}
	cell := cells(vs)
	p := printer{shape: shape, shown: shown, edge: l.Edge, cell: func(i int) string { return cell(vs[i]) }}
	return p.array(0, 0, " ", l.Width), nil
}

// ends reads the elements to print: all of them, or for a large tensor the first and last ones
// along every dimension. They are packed densely, with extents shown.
func ends[T Element](t *Tensor, l layout) (shown ir.Shape, vs []T, err error) {
	shape := t.shape()
	if t.Len() <= l.Threshold {
		vs, err = Values[T](t)
		return shape, vs, err
	}
	// After Eval, the slices below are only metadata, not ops.
	if err := t.Eval(); err != nil {
		return nil, nil, err
	}
	shown = append(ir.Shape{}, shape...)
	var long []int
	for i, n := range shape {
		if n > 2*l.Edge {
			shown[i] = 2 * l.Edge
			long = append(long, i)
		}
	}
	vs = make([]T, shown.Elems())
	for corner := range 1 << len(long) {
		ranges := make([]Range, len(shape))
		base := make([]int, len(shape)) // where the corner starts in shown
		for bit, dim := range long {
			ranges[dim] = R(0, l.Edge)
			if corner>>bit&1 == 1 {
				ranges[dim] = R(shape[dim]-l.Edge, End)
				base[dim] = l.Edge
			}
		}
		part := t.Slice(ranges...)
		got, err := Values[T](part)
		if err != nil {
			return nil, nil, err
		}
		scatter(vs, shown, base, got, part.shape())
		done(part)
	}
	return shown, vs, nil
}

// scatter copies src, a dense block of the given extents, into dst at base.
func scatter[T Element](dst []T, shape ir.Shape, base []int, src []T, block ir.Shape) {
	stride := shape.RowMajor()
	for i, v := range src {
		at, rest := 0, i
		for d := len(block) - 1; d >= 0; d-- {
			at += (base[d] + rest%block[d]) * stride[d]
			rest /= block[d]
		}
		dst[at] = v
	}
}

// printer nests brackets and breaks lines, as NumPy's array2string does.
type printer struct {
	shape ir.Shape // of the tensor
	shown ir.Shape // of the printed part; smaller if a dimension is summarised
	edge  int      // elements at both ends of a summarised dimension
	cell  func(i int) string
}

// array prints the elements of dimensions dim and later that start at element at. Lines after the
// first begin with indent. width is the room for a line without the closing brackets.
func (p *printer) array(dim, at int, indent string, width int) string {
	if dim == len(p.shape) {
		return p.cell(at)
	}
	stride := 1
	for _, n := range p.shown[dim+1:] {
		stride *= n
	}
	n := p.shown[dim]
	var parts []string
	for i := range n {
		if n < p.shape[dim] && i == p.edge {
			parts = append(parts, "...")
		}
		parts = append(parts, p.array(dim+1, at+i*stride, indent+" ", width-1))
	}
	if dim < len(p.shape)-1 {
		sep := strings.Repeat("\n", len(p.shape)-dim-1) + indent
		return "[" + strings.Join(parts, sep) + "]"
	}
	return "[" + breakLines(parts, indent, width-1) + "]"
}

// breakLines joins words by spaces into lines no longer than width.
func breakLines(words []string, indent string, width int) string {
	var b strings.Builder
	line := indent
	for i, w := range words {
		if len(line)+len(w) > width && len(line) > len(indent) {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = indent
		}
		line += w
		if i < len(words)-1 {
			line += " "
		}
	}
	b.WriteString(line)
	return b.String()[len(indent):]
}

// cells returns a function that right-aligns integers.
func cells[T integer](vs []T) func(T) string {
	width := 0
	for _, v := range vs {
		width = max(width, len(plain(v)))
	}
	return func(v T) string { return fmt.Sprintf("%*d", width, v) }
}

func plain[T integer](v T) string { return fmt.Sprint(v) }

func boolCells([]bool) func(bool) string { return boolCell }

func boolCell(v bool) string {
	if v {
		return " True"
	}
	return "False"
}

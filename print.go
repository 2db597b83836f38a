package millrace

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// PrintOptions say how a tensor is printed. The zero value prints like [Tensor.String], with
// NumPy's defaults.
type PrintOptions struct {
	Threshold int // tensors of more elements are summarised; 0: 1000, negative: none is
	Edge      int // elements shown at both ends of a summarised dimension, at least 1; 0: 3
	Width     int // columns of a line; 0: 75, negative: no limit
	Precision int // most digits after the point; 0: 8, negative: none
}

// Sprint prints t as [Tensor.String] does, with these options.
func (o PrintOptions) Sprint(t *Tensor) string { return layout{PrintOptions: o}.sprint(t) }

// Format prints t by the verbs of package fmt. The layout is String's:
//
//	%v %s   as [Tensor.String]; a precision, as in %.3v, is the most digits after the point
//	%+v     with dtype, shape and device in a line before
//	%.3f    floats by the verbs e, E, f, F, g, G, b, x and X
//	%4d     integers by the verbs d, b, o, O, x and X
//	%t      bools
//
// Width, precision and flags apply to each element, and all elements are padded to the longest
// one. A verb that the dtype does not have prints the mistake as package fmt does, with the dtype
// and the shape. Tensors of more than 1000 elements are summarised.
func (t *Tensor) Format(f fmt.State, verb rune) {
	if f == nil {
		return // there is nothing to print to
	}
	l := layout{state: f}
	if digits, ok := f.Precision(); ok {
		l.Precision = digits
		if digits == 0 {
			l.Precision = -1
		}
	}
	t = still(t)
	defer done(t)
	switch {
	case verb == 'v' || verb == 's':
	case !t.made() || t.Err() != nil:
	case !strings.ContainsRune(verbs(t.DType()), verb):
		fmt.Fprintf(f, "%%!%c(%v%v)", verb, t.DType(), t.Shape())
		return
	default:
		l.verb = fmt.FormatString(f, verb)
	}
	text := l.sprint(t)
	if verb == 'v' && (f.Flag('+') || f.Flag('#')) && t.Err() == nil {
		text = fmt.Sprintf("%v%v on %s\n", t.DType(), t.Shape(), t.Stream().Device().Name()) + text
	}
	io.WriteString(f, text)
}

// verbs returns the verbs for elements of a dtype, besides v and s.
func verbs(dt DType) string {
	switch {
	case dt == Bool:
		return "t"
	case dt.IsFloat():
		return "eEfFgGbxX"
	}
	return "dboOxX"
}

// layout is how a tensor is printed, with all options filled in.
type layout struct {
	PrintOptions
	verb  string    // a format for each element; "" for String's
	state fmt.State // the flags of verb
}

func (l layout) sprint(t *Tensor) string {
	settle := func(n *int, otherwise, negative int) {
		switch {
		case *n == 0:
			*n = otherwise
		case *n < 0:
			*n = negative
		}
	}
	settle(&l.Threshold, 1000, math.MaxInt)
	settle(&l.Edge, 3, 1)
	settle(&l.Width, 75, math.MaxInt)
	settle(&l.Precision, 8, 0)
	l.Edge = min(l.Edge, math.MaxInt/2)
	t = still(t)
	defer done(t)
	err := t.Err()
	if err == nil {
		var text string
		if text, err = elementTypes[t.DType()].text(t, l); err == nil {
			return text
		}
	}
	return "<" + err.Error() + ">"
}

// verbCells prints elements by the verb and pads them to the longest one.
func verbCells[T Element](l layout) func(vs []T) func(T) string {
	return func(vs []T) func(T) string {
		width := 0
		for _, v := range vs {
			width = max(width, len(verbCell(l, v)))
		}
		return func(v T) string {
			text := verbCell(l, v)
			if l.state.Flag('-') {
				return text + strings.Repeat(" ", width-len(text))
			}
			return padLeft(text, width)
		}
	}
}

func verbCell[T Element](l layout, v T) string {
	if x, ok := any(v).(interface{ Float32() float32 }); ok {
		return fmt.Sprintf(l.verb, x.Float32())
	}
	return fmt.Sprintf(l.verb, v)
}

// String runs the ops that t needs and prints its elements as NumPy does: aligned, with at most 8
// digits after the point, and in nested brackets. Of a tensor with more than 1000 elements it
// reads and prints only the ends of each dimension, with "..." for the middle. A tensor that
// carries an error, or was released, prints the error between < >. [PrintOptions] and the verbs
// of [Tensor.Format] print in other ways.
func (t *Tensor) String() string { return PrintOptions{}.Sprint(t) }

func boolText(t *Tensor, l layout) (string, error) {
	return textOf(t, l, boolCells, func(v bool) string { return strings.TrimSpace(boolCell(v)) })
}

func floats[T float32 | float64](t *Tensor, l layout) (string, error) {
	dt := t.DType()
	cells := func(vs []T) func(T) string { return floatCells(vs, dt, l.Precision) }
	return textOf(t, l, cells, func(v T) string { return floatScalar(float64(v), dt) })
}

// integer lists the Go types of the integer dtypes.
type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

func integers[T integer](t *Tensor, l layout) (string, error) {
	return textOf(t, l, cells[T], plain[T])
}

// halves prints 16-bit floats in the layout of float32 numbers with fewer digits.
func halves[T storedFloat](t *Tensor, l layout) (string, error) {
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

// floatCells chooses one layout for all elements, as NumPy does: positional, or scientific if the
// magnitudes are extreme. Positional cells show the shortest digits that identify each element,
// aligned at the point. Scientific cells all have the same number of digits.
func floatCells[T float32 | float64](vs []T, dt DType, precision int) func(T) string {
	f := floatLayout{dt: dt, precision: precision}
	lo, hi := T(math.Inf(1)), T(0)
	for _, v := range vs {
		if a := max(v, -v); a != 0 && !math.IsInf(float64(a), 0) && a == a {
			lo, hi = min(lo, a), max(hi, a)
		}
	}
	f.scientific = hi != 0 && (hi >= 1e8 || lo < 1e-4 || hi/lo > 1000)
	special, minus := false, false
	for _, v := range vs {
		x := float64(v)
		if math.IsInf(x, 0) || x != x {
			special = true
			minus = minus || x < 0
			continue
		}
		whole, frac, exp := f.digits(x)
		f.left, f.right, f.exp = max(f.left, len(whole)), max(f.right, len(frac)), max(f.exp, len(exp))
	}
	if special {
		width := len("inf")
		if minus {
			width++
		}
		f.left = max(f.left, width-f.tail())
	}
	return func(v T) string { return f.cell(float64(v)) }
}

// floatLayout is the common form of the cells of an array.
type floatLayout struct {
	dt          DType
	precision   int // digits after the point, at most
	scientific  bool
	left, right int // digits before and after the point
	exp         int // characters of the exponent with its sign
}

// tail is the width from the point to the end of a cell.
func (f *floatLayout) tail() int {
	if f.scientific && f.exp > 0 {
		return 1 + f.right + 1 + f.exp
	}
	return 1 + f.right
}

func (f *floatLayout) cell(x float64) string {
	if math.IsInf(x, 0) || x != x {
		return padLeft(special(x), f.left+f.tail())
	}
	if !f.scientific {
		whole, frac, _ := f.digits(x)
		return padLeft(whole, f.left) + "." + frac + strings.Repeat(" ", f.right-len(frac))
	}
	// Show exact digits, not zeros after the shortest ones.
	mantissa, exp, _ := strings.Cut(strconv.FormatFloat(x, 'e', f.right, 64), "e")
	if f.right == 0 {
		mantissa += "."
	}
	return padLeft(mantissa, f.left+1+f.right) + "e" + exp[:1] + strings.Repeat("0", f.exp-len(exp)) + exp[1:]
}

// digits splits x into the whole part with its sign, the digits after the point without trailing
// zeros, and the exponent with its sign.
func (f *floatLayout) digits(x float64) (whole, frac, exp string) {
	verb := byte('f')
	if f.scientific {
		verb = 'e'
	}
	text := shortest(x, verb, f.dt)
	mantissa, exp, _ := strings.Cut(text, "e")
	if _, frac, _ = strings.Cut(mantissa, "."); len(frac) > f.precision {
		// Do not cut off the shortest digits, because that would round twice.
		mantissa, exp, _ = strings.Cut(strconv.FormatFloat(x, verb, f.precision, 64), "e")
	}
	whole, frac, _ = strings.Cut(mantissa, ".")
	return whole, strings.TrimRight(frac, "0"), exp
}

// floatScalar prints one number as Python does.
func floatScalar(x float64, dt DType) string {
	if math.IsInf(x, 0) || x != x {
		return special(x)
	}
	if a := math.Abs(x); a != 0 && (a < 1e-4 || a >= 1e16) {
		return shortest(x, 'e', dt)
	}
	text := shortest(x, 'f', dt)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

func special(x float64) string {
	switch {
	case math.IsInf(x, 1):
		return "inf"
	case math.IsInf(x, -1):
		return "-inf"
	}
	return "nan"
}

func padLeft(s string, width int) string {
	return strings.Repeat(" ", max(width-len(s), 0)) + s
}

// shortest is strconv's shortest form in the formats 'e' and 'f', for 16-bit floats too: it
// returns the fewest digits that round back to x.
func shortest(x float64, verb byte, dt DType) string {
	if !dt.Storage() {
		return strconv.FormatFloat(x, verb, -1, dt.Bits())
	}
	want := ir.FloatBits(dt, x)
	for digits := 0; ; digits++ {
		text := strconv.FormatFloat(x, 'e', digits, 64)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || ir.FloatBits(dt, v) != want {
			continue // five digits are enough for any
		}
		if verb == 'f' {
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
		return text
	}
}

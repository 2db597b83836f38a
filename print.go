package millrace

import (
	"fmt"
	"io"
	"math"
	"strings"
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
		if text, err = texts[t.DType()](t, l); err == nil {
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
	switch x := any(v).(type) {
	case F16:
		return fmt.Sprintf(l.verb, x.Float32())
	case BF16:
		return fmt.Sprintf(l.verb, x.Float32())
	}
	return fmt.Sprintf(l.verb, v)
}

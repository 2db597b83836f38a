package ir

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseGraph reads the text form of a graph and verifies it. It skips blank lines and lines that
// start with #. An error names the line.
func ParseGraph(src string) (*Graph, error) {
	q := programParser{p: &Graph{}}
	line := 0
	for s := range strings.Lines(src) {
		line++
		words := strings.Fields(s)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		if err := q.line(words); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
	if err := q.p.Verify(); err != nil {
		return nil, err
	}
	return q.p, nil
}

type programParser struct {
	p     *Graph
	types []TensorType // of the tensors read so far
}

func (q *programParser) line(words []string) error {
	switch words[0] {
	case "output":
		for _, w := range words[1:] {
			id, err := parseID(w)
			if err != nil {
				return err
			}
			q.p.Outputs = append(q.p.Outputs, id)
		}
		return nil
	case "release", "keep":
		n := Node{}
		n.Op, _ = ParseOp(words[0])
		return q.node(n, words[1:], Invalid)
	}
	if want := "%" + strconv.Itoa(len(q.types)); words[0] != want {
		return fmt.Errorf("tensor %s, want %s", words[0], want)
	}
	if len(words) < 5 || words[1] != "=" || words[len(words)-2] != ":" {
		return fmt.Errorf("want a line %s = op … : type", words[0])
	}
	t, err := parseType(words[len(words)-1])
	if err != nil {
		return err
	}
	q.types = append(q.types, t)
	op := words[2]
	words = words[3 : len(words)-2]
	if op == "input" {
		if len(words) > 0 || len(q.p.Nodes) > 0 {
			return fmt.Errorf("inputs come first and have no operands")
		}
		q.p.Inputs = append(q.p.Inputs, t)
		return nil
	}
	n := Node{DT: t.DT, Shape: t.Shape}
	var ok bool
	if n.Op, ok = ParseOp(op); !ok || n.Op.Class() == ClassMark {
		return fmt.Errorf("%q is not an op", op)
	}
	return q.node(n, words, t.DT)
}

// node reads operands and attributes and appends n.
func (q *programParser) node(n Node, words []string, dt DType) error {
	operands := words
	for i, w := range words {
		if isAttr(w) {
			operands = words[:i]
			break
		}
	}
	if len(operands) > len(n.Args) {
		return fmt.Errorf("%s: more than %d operands", n.Op, len(n.Args))
	}
	tensor := Invalid
	for i, w := range operands {
		if w[0] != '%' {
			continue
		}
		id, err := parseID(w)
		if err != nil {
			return err
		}
		n.Args[i] = T(id)
		if tensor == Invalid && id < len(q.types) {
			tensor = q.types[id].DT
		}
	}
	for i, w := range operands {
		if w[0] == '%' {
			continue
		}
		d := ScalarDType(n.Op, i, tensor, dt)
		bits, err := ParseBits(d, w)
		if err != nil {
			return fmt.Errorf("%s: operand %d: %w", n.Op, i, err)
		}
		n.Args[i] = S(len(q.p.Scalars))
		q.p.Scalars = append(q.p.Scalars, ScalarValue{d, bits})
	}
	n.NArgs = uint8(len(operands))
	if err := parseAttr(&n, words[len(operands):]); err != nil {
		return err
	}
	q.p.Nodes = append(q.p.Nodes, n)
	return nil
}

func isAttr(word string) bool {
	return word == "keep" || word == "descending" || strings.Contains(word, "=")
}

func parseAttr(n *Node, words []string) error {
	use := n.Op.Info().Attrs
	if use != 0 {
		n.Attr = &Attr{}
	}
	for _, w := range words {
		name, value, list := strings.Cut(w, "=")
		field, ok := attrFields[name]
		if !ok || !use.Has(field) || list == (field == AttrKeep || field == AttrDescending) {
			return fmt.Errorf("%s has no %q", n.Op, w)
		}
		if err := setAttr(n.Attr, field, value); err != nil {
			return err
		}
	}
	return nil
}

var attrFields = map[string]AttrSet{
	"axes": AttrAxes, "keep": AttrKeep, "descending": AttrDescending, "start": AttrStart, "step": AttrStep,
	"mode": AttrMode, "combine": AttrCombine,
}

func setAttr(a *Attr, field AttrSet, value string) (err error) {
	var i int
	switch field {
	case AttrAxes:
		a.Axes, err = parseInts(value)
	case AttrKeep:
		a.Keep = true
	case AttrDescending:
		a.Descending = true
	case AttrStart:
		a.Start, err = parseInts(value)
	case AttrStep:
		a.Step, err = parseInts(value)
	case AttrMode:
		i, err = parseName(indexModeNames[:], value)
		a.Mode = IndexMode(i)
	case AttrCombine:
		i, err = parseName(combineNames[:], value)
		a.Combine = Combine(i)
	}
	return err
}

func parseName(names []string, s string) (int, error) {
	if i := slices.Index(names, s); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("%q is not one of %s", s, strings.Join(names, ", "))
}

func parseInts(s string) ([]int, error) {
	v := []int{}
	if s == "" {
		return v, nil
	}
	for w := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(w)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", w)
		}
		v = append(v, n)
	}
	return v, nil
}

func parseID(w string) (int, error) {
	digits, ok := strings.CutPrefix(w, "%")
	n, err := strconv.ParseUint(digits, 10, 31)
	if !ok || err != nil {
		return 0, fmt.Errorf("%q is not a tensor", w)
	}
	return int(n), nil
}

// parseType reads float32(2,3).
func parseType(w string) (TensorType, error) {
	name, dims, ok := strings.Cut(w, "(")
	dims, closed := strings.CutSuffix(dims, ")")
	dt, known := ParseDType(name)
	if !ok || !closed || !known {
		return TensorType{}, fmt.Errorf("%q is not a tensor type", w)
	}
	shape, err := parseInts(dims)
	if err != nil {
		return TensorType{}, err
	}
	return TensorType{dt, shape}, nil
}

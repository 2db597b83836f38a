package spirv

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// value is the result of an instruction, or a constant. A constant scalar has an id only once it is
// used.
type value struct {
	typ      typ
	id       uint32
	constant bool
	bits     uint32 // of a constant without an id
}

// use is the id of a value.
func (c *compiler) use(v value) uint32 {
	switch {
	case v.id != 0:
		return v.id
	case v.typ == void:
		c.fail("no value")
	}
	return c.constant(v.typ, v.bits)
}

// need is a value that must have a type.
func (c *compiler) need(v value, t typ) value {
	if v.typ != t {
		c.fail("%v, want %v", v.typ, t)
	}
	return v
}

// emit adds an instruction that has a result.
func (c *compiler) emit(op uint32, t typ, operands ...uint32) value {
	of, id := c.typ(t), c.id()
	c.body.add(op, slices.Concat([]uint32{of, id}, operands)...)
	return value{typ: t, id: id}
}

// expr reads an expression of operators that bind more strongly than least.
func (c *compiler) expr(least int) value {
	x := c.unary()
	for binding[c.token] > least {
		op := c.take()
		x = c.binary(op, x, c.expr(binding[op]))
	}
	return x
}

func (c *compiler) binary(op string, x, y value) value {
	t, table := x.typ, operators
	if _, ok := comparisons[op]; ok {
		t, table = t.as(boolean), comparisons
	}
	code := table[op].of(x.typ.kind)
	if op == "+" && x.typ.kind == matrixC {
		code = opFAdd
	}
	shift := (op == "<<" || op == ">>") && y.typ == x.typ.as(unsigned)
	if code == 0 || x.typ != y.typ && !shift {
		c.fail("%v %s %v", x.typ, op, y.typ)
	}
	v := c.emit(code, t, c.use(x), c.use(y))
	switch code {
	case opFAdd, opFSub, opFMul, opFDiv:
		c.decorate(v.id, asNoContraction)
	}
	return v
}

// unary reads an operand with the operators before it and the components behind it.
func (c *compiler) unary() value {
	c.deeper()
	defer func() { c.depth-- }()
	if table, ok := unaries[c.token]; ok {
		op := c.take()
		x := c.unary()
		code := table.of(x.typ.kind)
		switch {
		case code == 0:
			c.fail("%s%v", op, x.typ)
		case !x.constant || x.id != 0 || op != "-":
			return c.emit(code, x.typ, c.use(x))
		case x.typ.kind == float:
			x.bits ^= 1 << 31
		default:
			x.bits = -x.bits
		}
		return x
	}
	x := c.operand()
	for c.skip(".") {
		x = c.part(x, c.take())
	}
	return x
}

func (c *compiler) operand() value {
	switch {
	case c.skip("("):
		x := c.expr(0)
		c.want(")")
		return x
	case c.token != "" && isDigit(c.token[0]):
		return c.literal()
	case c.skip("false"):
		return value{typ: yes, constant: true}
	case c.skip("true"):
		return value{typ: yes, constant: true, bits: 1}
	}
	name := c.name()
	if c.token == "(" {
		return c.call(name)
	}
	switch s := c.find(name); {
	case s == nil || s.function != 0:
		c.fail("%q is not defined", name)
		return value{}
	case s.pointer == 0:
		return s.value
	default:
		return c.load(c.place(s))
	}
}

func (c *compiler) literal() value {
	s := c.take()
	v, err := value{constant: true}, error(nil)
	if digits, ok := strings.CutSuffix(s, "u"); ok {
		n, e := strconv.ParseUint(digits, 0, 32)
		v.typ, v.bits, err = u32, uint32(n), e
	} else if strings.ContainsAny(s, ".e") && !strings.HasPrefix(s, "0x") {
		f, e := strconv.ParseFloat(s, 32)
		v.typ, v.bits, err = typ{float, 1}, math.Float32bits(float32(f)), e
	} else {
		n, e := strconv.ParseUint(s, 0, 32) // a minus in front of 1<<31 makes it fit
		v.typ, v.bits, err = typ{signed, 1}, uint32(n), e
	}
	if err != nil {
		c.fail("%q is not a number", s)
	}
	return v
}

// place is where a variable, or a part of it, is in memory.
type place struct {
	pointer uint32
	typ     typ
	swizzle string // several components of it, which can only be read
	atomic  bool
	class   uint32
	narrow  kind // see symbol
}

// stored is the type in memory.
func (p *place) stored() typ {
	if p.narrow != none {
		return p.typ.as(p.narrow)
	}
	return p.typ
}

// place reads the index and the components behind a variable.
func (c *compiler) place(s *symbol) place {
	p := place{pointer: s.pointer, typ: s.value.typ, atomic: s.atomic, class: s.class, narrow: s.narrow}
	var path []uint32
	if s.block {
		path = append(path, c.uint(0))
	}
	if s.array {
		c.want("[")
		at := c.expr(0)
		if at.typ != u32 && at.typ != u32.as(signed) {
			c.fail("an index that is %v", at.typ)
		}
		path = append(path, c.use(at))
		c.want("]")
	}
	if c.skip(".") {
		part := c.take()
		at, t := c.component(p.typ, part)
		if at < 0 {
			p.swizzle = part
		} else {
			path = append(path, c.uint(uint32(at)))
			p.typ = t
		}
	}
	if len(path) > 0 {
		of, id := c.pointer(s.class, c.typ(p.stored())), c.id()
		c.body.add(opAccessChain, slices.Concat([]uint32{of, id, s.pointer}, path)...)
		p.pointer = id
	}
	return p
}

// component finds a component of a type by name; -1 if the name has none or several.
func (c *compiler) component(t typ, name string) (at int, of typ) {
	names := "xyzw"[:t.n]
	of = typ{t.kind, 1}
	if t.kind == wide {
		names, of = "lh", c.wide
	}
	if len(name) != 1 {
		return -1, void
	}
	return strings.Index(names, name), of
}

func (c *compiler) load(p place) value {
	if p.atomic {
		c.fail("atomic memory is read by load()")
	}
	v := c.emit(opLoad, p.stored(), append([]uint32{p.pointer}, c.shared(p.class, makeVisible)...)...)
	if p.narrow != none {
		v = c.emit(opUConvert, p.typ, v.id)
	}
	if p.swizzle != "" {
		return c.part(v, p.swizzle)
	}
	return v
}

// part is some components of a value.
func (c *compiler) part(v value, name string) value {
	if v.typ.n == 1 && v.typ.kind != wide {
		c.fail("no component %q of %v", name, v.typ)
	}
	if at, of := c.component(v.typ, name); at >= 0 {
		return c.emit(opCompositeExtract, of, c.use(v), uint32(at))
	}
	id := c.use(v)
	operands := []uint32{id, id}
	for i := range len(name) {
		at, _ := c.component(v.typ, name[i:i+1])
		if at < 0 || i > 3 || v.typ.kind == wide {
			c.fail("no component %q of %v", name, v.typ)
		}
		operands = append(operands, uint32(at))
	}
	if len(operands) < 4 { // names a single component, which is not there
		c.fail("no component %q of %v", name, v.typ)
	}
	return c.emit(opVectorShuffle, typ{v.typ.kind, len(operands) - 2}, operands...)
}

package spirv

import "strings"

// call reads the operands of an operation, a conversion or a function, behind its name.
func (c *compiler) call(name string) value {
	c.want("(")
	if t, ok := c.typeOf(name, types, matrices); ok {
		return c.construct(t, c.operands())
	}
	switch name {
	case "bits":
		t := c.number()
		c.want(",")
		x := c.expr(0)
		c.want(")")
		return c.bitsAs(t, x)
	case "load", "store", "most":
		return c.atomicCall(name)
	case "matload", "matloadt", "matstore":
		return c.matrixCall(name)
	}
	args := c.operands()
	if s := c.find(name); s != nil && s.function != 0 {
		c.arity(name, args, len(s.params))
		ids := []uint32{s.function}
		for i, a := range args {
			ids = append(ids, c.use(c.need(a, s.params[i])))
		}
		return c.emit(opFunctionCall, s.value.typ, ids...)
	}
	if op, ok := called[name]; ok {
		c.arity(name, args, 2)
		return c.binary(op, args[0], args[1])
	}
	if f, ok := functions[name]; ok {
		c.arity(name, args, f.operands)
		t := args[0].typ
		ids := []uint32{c.glsl, f.of(t.kind)}
		for _, a := range args {
			ids = append(ids, c.use(c.need(a, t)))
		}
		if ids[1] == 0 {
			c.fail("%s of %v", name, t)
		}
		return c.emit(opExtInst, t, ids...)
	}
	if rest, ok := strings.CutPrefix(name, "subgroup"); ok {
		return c.subgroupCall(rest, args)
	}
	switch name {
	case "members", "member":
		return c.subgroupCall(name, args)
	case "matadd":
		return c.matrixSum(args)
	case "halves":
		return c.halvesOf(args)
	case "not":
		c.arity(name, args, 1)
		t := args[0].typ
		return c.emit(opLogicalNot, t, c.use(c.need(args[0], t.as(boolean))))
	case "any", "all":
		c.arity(name, args, 1)
		x := c.need(args[0], args[0].typ.as(boolean))
		switch {
		case x.typ.n == 1:
			return x
		case name == "any":
			return c.emit(opAny, yes, c.use(x))
		}
		return c.emit(opAll, yes, c.use(x))
	case "select": // no, yes, condition
		c.arity(name, args, 3)
		t := args[0].typ
		if cond := args[2].typ; t.kind > wide || cond != yes && cond != t.as(boolean) {
			c.fail("select by %v", cond)
		}
		return c.emit(opSelect, t, c.use(args[2]), c.use(c.need(args[1], t)), c.use(args[0]))
	}
	c.fail("no function %q", name)
	return value{}
}

// operands reads values up to the bracket that ends them, which it skips.
func (c *compiler) operands() (args []value) {
	for !c.skip(")") {
		if len(args) > 0 {
			c.want(",")
		}
		args = append(args, c.expr(0))
	}
	return args
}

func (c *compiler) arity(name string, args []value, n int) {
	if len(args) != n {
		c.fail("%s of %d operands, want %d", name, len(args), n)
	}
}

// atomicCall reads an operation on a word of atomic memory.
func (c *compiler) atomicCall(name string) value {
	s := c.find(c.name())
	if s == nil || !s.atomic {
		c.fail("%s of memory that is not atomic", name)
	}
	operands := []uint32{c.place(s).pointer, c.atomicScope(), c.uint(semanticsNone)}
	if name != "load" {
		c.want(",")
		operands = append(operands, c.use(c.need(c.expr(0), u32)))
	}
	c.want(")")
	switch name {
	case "load":
		return c.emit(opAtomicLoad, u32, operands...)
	case "most":
		return c.emit(opAtomicUMax, u32, operands...)
	}
	c.body.add(opAtomicStore, operands...)
	return value{}
}

// subgroupCall is an operation on subgroups; name is members, member, or what follows "subgroup".
func (c *compiler) subgroupCall(name string, args []value) value {
	if !c.subgroups {
		c.fail("the text does not declare subgroups")
	}
	scope := c.uint(scopeSubgroup)
	switch name {
	case "s":
		c.arity("subgroups", args, 0)
		return c.readInput(inNumSubgroups, u32)
	case "":
		c.arity("subgroup", args, 0)
		return c.readInput(inSubgroupID, u32)
	case "members":
		c.arity(name, args, 0)
		return c.readInput(inSubgroupSize, u32)
	case "member":
		c.arity(name, args, 0)
		return c.readInput(inSubgroupLocalInvocationID, u32)
	case "Elect":
		c.arity("subgroupElect", args, 0)
		return c.emit(opGroupElect, yes, scope)
	}
	if code := shuffles[name]; code != 0 {
		if !c.shuffles {
			c.fail("the text does not declare shuffles")
		}
		c.arity("subgroup"+name, args, 2)
		if t := args[0].typ; !t.kind.number() && t != yes {
			c.fail("subgroup%s of %v", name, t)
		}
		return c.emit(code, args[0].typ, scope, c.use(args[0]), c.use(c.need(args[1], u32)))
	}
	if op, ok := strings.CutPrefix(name, "Clustered"); ok {
		return c.clusteredCall(op, args)
	}
	c.arity("subgroup"+name, args, 1)
	x := args[0]
	switch name {
	case "Any":
		return c.emit(opGroupAny, yes, scope, c.use(c.need(x, yes)))
	case "All":
		return c.emit(opGroupAll, yes, scope, c.use(c.need(x, yes)))
	}
	how := uint32(groupReduce)
	op, exclusive := strings.CutPrefix(name, "Exclusive")
	if exclusive {
		how = groupExclusive
	}
	code := overSubgroup[op].of(x.typ.kind)
	if code == 0 {
		c.fail("subgroup%s of %v", name, x.typ)
	}
	return c.emit(code, x.typ, scope, how, c.use(x))
}

// clusteredCall is a reduction over each so many invocations of a subgroup.
func (c *compiler) clusteredCall(op string, args []value) value {
	if !c.clusters {
		c.fail("the text does not declare clusters")
	}
	c.arity("subgroupClustered"+op, args, 2)
	x, size := args[0], c.need(args[1], u32)
	code := overSubgroup[op].of(x.typ.kind)
	if code == 0 {
		c.fail("subgroupClustered%s of %v", op, x.typ)
	}
	if !size.constant {
		c.fail("clusters of a size that is not a constant")
	}
	return c.emit(code, x.typ, c.uint(scopeSubgroup), groupClustered, c.use(x), c.use(size))
}

// construct makes a value of a type: it converts one, repeats a scalar, or joins components.
func (c *compiler) construct(t typ, args []value) value {
	one, n, constant := typ{t.kind, 1}, 0, true
	if t.kind == wide {
		c.arity("wide", args, 2)
		return c.emit(opCompositeConstruct, t, c.use(c.need(args[0], c.wide)), c.use(c.need(args[1], c.wide)))
	}
	if t.kind == matrixC && len(args) == 1 && args[0].typ == f32 { // all of its sums are the same
		return c.emit(opCompositeConstruct, t, c.use(args[0]))
	}
	for _, a := range args {
		n += a.typ.n
		constant = constant && a.constant
	}
	if len(args) == 1 && n == t.n {
		return c.convert(t, args[0])
	}
	var ids []uint32
	switch {
	case len(args) == 1 && n == 1:
		x := c.use(c.need(args[0], one))
		ids = []uint32{x, x, x, x}[:t.n]
	case n == t.n:
		for _, a := range args {
			ids = append(ids, c.use(c.need(a, typ{t.kind, a.typ.n})))
		}
	default:
		c.fail("%d components were given for %v", n, t)
	}
	if constant && (len(args) == 1 || len(args) == t.n) {
		return value{typ: t, constant: true, id: c.unique(opConstantComposite, []uint32{c.typ(t)}, ids...)}
	}
	return c.emit(opCompositeConstruct, t, ids...)
}

// convert converts numbers, which must be in the range of the type.
func (c *compiler) convert(t typ, x value) value {
	code := uint32(0)
	switch from := x.typ.kind; {
	case from == t.kind:
		return x
	case from == float && t.kind == unsigned:
		code = opConvertFToU
	case from == float && t.kind == signed:
		code = opConvertFToS
	case from == signed && t.kind == float:
		code = opConvertSToF
	case from == unsigned && t.kind == float:
		code = opConvertUToF
	case from == unsigned && t.kind == signed, from == signed && t.kind == unsigned:
		return c.bitsAs(t, x)
	default:
		c.fail("%v from %v", t, x.typ)
	}
	return c.emit(code, t, c.use(x))
}

// bitsAs is the bits of a number as another type.
func (c *compiler) bitsAs(t typ, x value) value {
	switch {
	case x.typ == t:
		return x
	case x.typ.n != t.n || !x.typ.kind.number():
		c.fail("bits of %v as %v", x.typ, t)
	case x.constant && x.id == 0:
		x.typ = t
		return x
	}
	return c.emit(opBitcast, t, c.use(x))
}

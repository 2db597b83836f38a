package spirv

// block reads statements up to the bracket that ends them, which it skips.
func (c *compiler) block() {
	for !c.skip("}") {
		if c.token == "" {
			c.fail("the text ends inside a block")
		}
		if c.ended { // the statement is never reached
			c.label(c.id())
		}
		c.statement()
	}
}

// label begins a basic block.
func (c *compiler) label(id uint32) {
	c.body.add(opLabel, id)
	c.ended = false
}

// branch ends a basic block, if it has not ended.
func (c *compiler) branch(to uint32) {
	if !c.ended {
		c.body.add(opBranch, to)
	}
	c.ended = true
}

// local declares a variable of the current function.
func (c *compiler) local(of uint32) uint32 {
	id := c.id()
	c.locals.add(opVariable, c.pointer(classFunction, of), id, classFunction)
	return id
}

func (c *compiler) statement() {
	switch c.token {
	case "if":
		c.next()
		c.branchIf()
		return
	case "for":
		c.next()
		c.nested(c.loop)
		return
	case "{":
		c.next()
		c.nested(c.block)
		return
	}
	switch word := c.take(); word {
	case "let":
		t, name := c.localType(), c.name()
		c.want("=")
		c.define(name, &symbol{value: c.need(c.expr(0), t)})
	case "var":
		t, name := c.localType(), c.name()
		s := &symbol{pointer: c.local(c.typ(t)), class: classFunction, value: value{typ: t}}
		if c.skip("=") {
			c.body.add(opStore, s.pointer, c.use(c.need(c.expr(0), t)))
		}
		c.define(name, s)
	case "array":
		name, t, length := c.name(), c.anyType(), c.length()
		c.define(name, &symbol{pointer: c.local(c.array(c.typ(t), length)), class: classFunction, array: true, value: value{typ: t}})
	case "return":
		if c.result == void {
			c.body.add(opReturn)
		} else {
			c.body.add(opReturnValue, c.use(c.need(c.expr(0), c.result)))
		}
		c.ended = true
	case "barrier":
		c.body.add(opControlBarrier, c.uint(scopeWorkgroup), c.uint(scopeWorkgroup), c.uint(semanticsWorkgroup))
	default:
		if c.token == "(" {
			c.call(word)
			break
		}
		c.assign(word)
	}
	c.want(";")
}

// assign reads an assignment behind its first name.
func (c *compiler) assign(name string) {
	s := c.find(name)
	if s == nil || s.pointer == 0 || s.fixed {
		c.fail("no assignment to %q", name)
	}
	to := c.place(s)
	if to.swizzle != "" || s.atomic {
		c.fail("no assignment to this part of %q", name)
	}
	c.want("=")
	x := c.use(c.need(c.expr(0), to.typ))
	if to.narrow != none {
		x = c.emit(opUConvert, to.stored(), x).id
	}
	c.body.add(opStore, append([]uint32{to.pointer, x}, c.shared(s.class, makeAvailable)...)...)
}

// branchIf reads a condition in brackets, and the block that it guards.
func (c *compiler) branchIf() {
	condition := c.use(c.need(c.expr(0), yes))
	then, after := c.id(), c.id()
	c.body.add(opSelectionMerge, after, 0)
	c.body.add(opBranchConditional, condition, then, after)
	c.label(then)
	c.want("{")
	c.nested(c.block)
	c.branch(after)
	c.label(after)
}

// loop reads "(NAME = FIRST; CONDITION; NEXT) {" and the block.
func (c *compiler) loop() {
	c.want("(")
	name := c.name()
	c.want("=")
	first := c.expr(0)
	if first.typ != u32 && first.typ.kind != signed {
		c.fail("a loop over %v", first.typ)
	}
	pointer := c.local(c.typ(first.typ))
	c.body.add(opStore, pointer, c.use(first))
	c.define(name, &symbol{pointer: pointer, class: classFunction, value: value{typ: first.typ}})
	c.want(";")
	head, test, body, onward, after := c.id(), c.id(), c.id(), c.id(), c.id()
	c.branch(head)
	c.label(head)
	c.body.add(opLoopMerge, after, onward, 0)
	c.branch(test)
	c.label(test)
	condition := c.use(c.need(c.expr(0), yes))
	c.body.add(opBranchConditional, condition, body, after)
	c.want(";")
	// The next value is read here, and computed behind the body.
	before := c.body
	c.body = nil
	next := c.use(c.need(c.expr(0), first.typ))
	step := c.body
	step.add(opStore, pointer, next)
	c.body = before
	c.want(")")
	c.want("{")
	c.label(body)
	c.nested(c.block)
	c.branch(onward)
	c.label(onward)
	c.body = append(c.body, step...)
	c.branch(head)
	c.label(after)
}

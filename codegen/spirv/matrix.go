package spirv

// Matrices are the cooperative matrices of a module. The invocations of a subgroup hold one
// together: mata has M by K elements, matb K by N, and matc M by N sums.
type Matrices struct {
	M, N, K int
	Of      string // the type of the elements of mata and matb: f16 or bf16; those of matc are f32
}

// HasMatrices reports whether a module declares matrices. Drivers want to know.
func HasMatrices(words []uint32) bool {
	const header = 5
	for at := header; at+1 < len(words) && words[at] == 2<<16|opCapability; at += 2 {
		if words[at+1] == canMatrices {
			return true
		}
	}
	return false
}

// matrices reads "M N K TYPE SUMS" behind the word "matrices". Such a module has Vulkan's memory
// model, in which accesses to workgroup memory say that others see them. So the word comes before
// all functions.
func (c *compiler) matrices() {
	x := Matrices{M: c.length(), N: c.length(), K: c.length(), Of: c.take()}
	of, ok := halves["vec4"+x.Of]
	switch {
	case c.out.Matrices != Matrices{}:
		c.fail("matrices are declared twice")
	case len(c.functions) > 0:
		c.fail("matrices are declared behind a function")
	case !ok:
		c.fail("matrices of %q", x.Of)
	}
	if sums := c.anyType(); sums != f32 {
		c.fail("sums of matrices that are %v", sums)
	}
	c.out.Matrices = x
	c.module.half, c.module.shape = of.kind, x
	c.extend("SPV_KHR_cooperative_matrix")
	c.require(canVulkanMemory)
	c.require(canMatrices)
	if of.kind == brain {
		c.extend("SPV_KHR_bfloat16")
		c.require(canBFloat16Matrices)
	}
}

// matrixType is the id of a matrix type. The last operand of its instruction is its use: A, B or
// sums.
func (m *module) matrixType(k kind) uint32 {
	rows, columns, of := m.shape.M, m.shape.K, m.half
	switch k {
	case matrixB:
		rows, columns = m.shape.K, m.shape.N
	case matrixC:
		columns, of = m.shape.N, float
	}
	return m.unique(opTypeMatrix, nil, m.typ(typ{of, 1}), m.uint(scopeSubgroup), m.uint(uint32(rows)), m.uint(uint32(columns)), m.uint(uint32(k-matrixA)))
}

// matrixCall reads the operands of a load or a store of a matrix, behind the bracket. Memory is an
// element of workgroup memory, and a stride counts its elements:
//
//	matload(TYPE, MEMORY, STRIDE)    its rows are contiguous
//	matloadt(TYPE, MEMORY, STRIDE)   its columns are
//	matstore(MEMORY, SUMS, STRIDE)   its rows are
func (c *compiler) matrixCall(name string) value {
	const byRows, byColumns = 0, 1
	if name == "matstore" {
		to := c.matrixMemory(float)
		x := c.use(c.need(c.expr(0), typ{matrixC, 1}))
		c.want(",")
		stride := c.use(c.need(c.expr(0), u32))
		c.want(")")
		c.body.add(opMatrixStore, to, x, c.uint(byRows), stride, makeAvailable, c.uint(scopeWorkgroup))
		return value{}
	}
	t := c.localType()
	if t.kind != matrixA && t.kind != matrixB {
		c.fail("%s of %v", name, t)
	}
	c.want(",")
	from, layout := c.matrixMemory(c.half), uint32(byRows)
	if name == "matloadt" {
		layout = byColumns
	}
	stride := c.use(c.need(c.expr(0), u32))
	c.want(")")
	return c.emit(opMatrixLoad, t, from, c.uint(layout), stride, makeVisible, c.uint(scopeWorkgroup))
}

// matrixMemory reads an element of workgroup memory, of components of a kind, and the comma behind
// it.
func (c *compiler) matrixMemory(of kind) uint32 {
	if c.half == none {
		c.fail("the text does not declare matrices")
	}
	s := c.find(c.name())
	if s == nil || s.class != classWorkgroup {
		c.fail("a matrix in memory that is not a workgroup's")
	}
	p := c.place(s)
	if p.typ.kind != of || p.swizzle != "" || p.typ != s.value.typ {
		c.fail("a matrix in memory of %v", p.typ)
	}
	c.want(",")
	return p.pointer
}

// halvesOf is four elements of matrices: the bits of two words, the lowest first, or four floats,
// converted.
func (c *compiler) halvesOf(args []value) value {
	if c.half == none {
		c.fail("the text does not declare matrices")
	}
	if len(args) == 1 {
		return c.emit(opFConvert, typ{c.half, 4}, c.use(c.need(args[0], typ{float, 4})))
	}
	c.arity("halves", args, 2)
	words := c.emit(opCompositeConstruct, typ{unsigned, 2}, c.use(c.need(args[0], u32)), c.use(c.need(args[1], u32)))
	return c.emit(opBitcast, typ{c.half, 4}, words.id)
}

// matrixSum is the matadd of two matrices and sums: the sums with the product added.
func (c *compiler) matrixSum(args []value) value {
	c.arity("matadd", args, 3)
	sums := typ{matrixC, 1}
	ids := make([]uint32, len(args))
	for i, a := range args {
		ids[i] = c.use(c.need(a, typ{matrixA + kind(i), 1}))
	}
	return c.emit(opMatrixMulAdd, sums, ids...)
}

// shared is the memory operands of an access to a variable that other invocations may access: none
// unless the memory model is Vulkan's.
func (c *compiler) shared(class, how uint32) []uint32 {
	if c.half == none || class != classWorkgroup {
		return nil
	}
	return []uint32{how, c.uint(scopeWorkgroup)}
}

// atomicScope is the scope of atomic operations. Vulkan's memory model has that of the device only
// with a capability of its own.
func (c *compiler) atomicScope() uint32 {
	if c.half != none {
		return c.uint(scopeQueue)
	}
	return c.uint(scopeDevice)
}

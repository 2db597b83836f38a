package native

// Line is what CompileLook asks for at a time, in bytes.
const Line = 64

// CompileLook makes code that asks for memory which will be wanted soon. In the frame
// operand 0 has the address, and points are lines.
func CompileLook(isa *ISA) (*Func, error) {
	c := newCode(isa)
	c.frame = newFrame(1, 0)
	c.load(rax, operandWord(0, Address))
	c.load(rcx, at(rdi, FramePoints))
	top := c.newLabel()
	c.asm.place(top)
	c.prefetch(at(rax, 0))
	c.opImm(add, ofGPR(rax), Line)
	c.opImm(sub, ofGPR(rcx), 1)
	c.jumpIf(notEqual, top)
	c.ret()
	code, err := c.finish()
	if err != nil {
		return nil, err
	}
	return &Func{Frame: *c.frame, Code: code, Lanes: 1}, nil
}

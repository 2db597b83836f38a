package native

// write appends the store of size bytes of a value.
func (b *Builder) write(v Value, size int, m Mem) {
	b.m.StoreItem(Item{Size: size, S: [3]Value{v}, Mem: m, InMem: true, Imm: NoImm})
}

// load1 appends the load of a whole vector.
func (b *Builder) load1(size int, m Mem, pre func()) Value {
	return b.m.LoadItem(Item{Size: size, D: b.Vec(size), Mem: m, InMem: true, Pre: pre, Imm: NoImm})
}

// Before emits the instructions that must precede an item's memory access.
func (it *Item) Before() {
	if it.Pre != nil {
		it.Pre()
	}
}

package spirv

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// code is a sequence of instructions.
type code []uint32

// add appends an instruction.
func (c *code) add(op uint32, operands ...uint32) {
	*c = append(*c, uint32(len(operands)+1)<<16|op)
	*c = append(*c, operands...)
}

// text is a string as operands.
func text(s string) []uint32 {
	b := append([]byte(s), make([]byte, 4-len(s)%4)...)
	list := make([]uint32, len(b)/4)
	for i := range list {
		list[i] = binary.LittleEndian.Uint32(b[i*4:])
	}
	return list
}

// module collects the sections of a module, which SPIR-V wants in this order.
type module struct {
	capabilities []uint32
	extensions   []string
	variables    []uint32 // global ones: the entry point lists them
	modes        code     // execution modes
	decorations  code
	globals      code // types, constants and variables
	functions    code

	last  uint32            // the last id that was given out
	glsl  uint32            // the set of functions GLSL.std.450
	known map[string]uint32 // types, constants and inputs, by their instruction
	key   []byte            // reused to make keys of known
	wide  typ               // the type of both words of a wide; none if there is no wide
	half  kind              // of the elements of matrices; none if there are no matrices
	shape Matrices
}

func newModule() *module {
	m := &module{known: map[string]uint32{}}
	m.glsl = m.id()
	m.require(canShader)
	return m
}

// can reports whether the module requires a capability.
func (m *module) can(capability uint32) bool { return slices.Contains(m.capabilities, capability) }

func (m *module) id() uint32 { m.last++; return m.last }

// require adds a capability.
func (m *module) require(capability uint32) {
	if !m.can(capability) {
		m.capabilities = append(m.capabilities, capability)
	}
}

// unique returns the type or constant that an instruction declares, which it adds if it is new. Its
// id is an operand of the instruction, behind before.
func (m *module) unique(op uint32, before []uint32, after ...uint32) uint32 {
	m.key = binary.LittleEndian.AppendUint32(m.key[:0], op)
	for _, list := range [...][]uint32{before, after} {
		for _, w := range list {
			m.key = binary.LittleEndian.AppendUint32(m.key, w)
		}
	}
	if id, ok := m.known[string(m.key)]; ok {
		return id
	}
	key := string(m.key)
	id := m.declare(op, before, after...)
	m.known[key] = id
	return id
}

// declare adds a declaration that is distinct from all others.
func (m *module) declare(op uint32, before []uint32, after ...uint32) uint32 {
	id := m.id()
	m.globals.add(op, slices.Concat(before, []uint32{id}, after)...)
	return id
}

func (m *module) decorate(id uint32, decoration ...uint32) {
	m.decorations.add(opDecorate, slices.Concat([]uint32{id}, decoration)...)
}

// kind is the kind of a type's components.
type kind byte

const (
	none kind = iota // the result of a procedure
	boolean
	signed
	unsigned
	float
	wide    // two words, named l and h
	half    // 16 bits in the format of IEEE 754, in vectors that are stored only, as those of brain are
	brain   // the upper half of a float
	matrixA // matrices, in the order of matadd
	matrixB
	matrixC
	short // 16 bits of a number, in bindings only
	octet // 8 bits
)

// typ is a scalar, or a vector of n components.
type typ struct {
	kind kind
	n    int
}

var (
	void = typ{none, 0}
	yes  = typ{boolean, 1}
	u32  = typ{unsigned, 1}
	f32  = typ{float, 1}
)

// types are the types of all texts by name, halves and matrices those of texts with matrices.
var types = map[string]typ{
	"f32": f32, "i32": {signed, 1}, "u32": u32, "bool": yes, "wide": {wide, 1},
	"vec4f32": {float, 4}, "vec4i32": {signed, 4}, "vec4u32": {unsigned, 4}, "vec4bool": {boolean, 4},
}

var (
	halves   = map[string]typ{"vec4f16": {half, 4}, "vec4bf16": {brain, 4}}
	matrices = map[string]typ{"mata": {matrixA, 1}, "matb": {matrixB, 1}, "matc": {matrixC, 1}}
)

var kindNames = [...]string{
	none: "nothing", boolean: "bool", signed: "i32", unsigned: "u32", float: "f32", wide: "wide",
	half: "f16", brain: "bf16", matrixA: "mata", matrixB: "matb", matrixC: "matc", short: "u16", octet: "u8",
}

// number reports whether arithmetic takes the kind.
func (k kind) number() bool { return k == signed || k == unsigned || k == float }

// cells are the types of narrow elements by name.
var cells = map[string]typ{"u16": {short, 1}, "u8": {octet, 1}, "vec4u16": {short, 4}, "vec4u8": {octet, 4}}

func (t typ) String() string {
	name := kindNames[t.kind]
	if t.n > 1 {
		return fmt.Sprintf("vec%d%s", t.n, name)
	}
	return name
}

// as is the type with components of another kind.
func (t typ) as(k kind) typ { return typ{k, t.n} }

// size is the number of bytes of a value in memory.
func (m *module) size(t typ) int {
	switch t.kind {
	case wide:
		return 8 * m.wide.n
	case half, brain, short:
		return 2 * t.n
	case octet:
		return t.n
	}
	return 4 * t.n
}

// typ is the id of a type.
func (m *module) typ(t typ) uint32 {
	if t.n > 1 {
		return m.unique(opTypeVector, nil, m.typ(typ{t.kind, 1}), uint32(t.n))
	}
	switch t.kind {
	case boolean:
		return m.unique(opTypeBool, nil)
	case signed:
		return m.unique(opTypeInt, nil, 32, 1)
	case unsigned:
		return m.unique(opTypeInt, nil, 32, 0)
	case float:
		return m.unique(opTypeFloat, nil, 32)
	case short:
		m.require(canStore16)
		return m.unique(opTypeInt, nil, 16, 0)
	case octet:
		m.require(canStore8)
		return m.unique(opTypeInt, nil, 8, 0)
	case wide:
		return m.unique(opTypeStruct, nil, m.typ(m.wide), m.typ(m.wide))
	case half:
		m.require(canFloat16)
		return m.unique(opTypeFloat, nil, 16)
	case brain:
		const format = 0 // bfloat16's
		m.require(canBFloat16)
		return m.unique(opTypeFloat, nil, 16, format)
	case matrixA, matrixB, matrixC:
		return m.matrixType(t.kind)
	}
	return m.unique(opTypeVoid, nil)
}

func (m *module) pointer(class, to uint32) uint32 { return m.unique(opTypePointer, nil, class, to) }

func (m *module) array(of uint32, n int) uint32 {
	return m.unique(opTypeArray, nil, of, m.uint(uint32(n)))
}

// constant is a scalar.
func (m *module) constant(t typ, bits uint32) uint32 {
	of := []uint32{m.typ(t)}
	switch {
	case t.kind != boolean:
		return m.unique(opConstant, of, bits)
	case bits != 0:
		return m.unique(opConstantTrue, of)
	}
	return m.unique(opConstantFalse, of)
}

func (m *module) uint(n uint32) uint32 { return m.constant(u32, n) }

// variable declares a global variable, of some initial value if there is one.
func (m *module) variable(class, of uint32, initial ...uint32) uint32 {
	id := m.declare(opVariable, []uint32{m.pointer(class, of)}, append([]uint32{class}, initial...)...)
	m.variables = append(m.variables, id)
	return id
}

// bind declares the variable of a binding, or of push constants: a struct of one array. The array has
// length elements, or as many as its memory has room for if that is 0.
func (m *module) bind(number int, class uint32, of typ, length int, readOnly bool) uint32 {
	// Types with a layout are not shared with others.
	var array uint32
	if length > 0 {
		array = m.declare(opTypeArray, nil, m.typ(of), m.uint(uint32(length)))
	} else {
		array = m.declare(opTypeRuntimeArray, nil, m.typ(of))
	}
	m.decorate(array, asArrayStride, uint32(m.size(of)))
	block := m.declare(opTypeStruct, nil, array)
	m.decorate(block, asBlock)
	m.decorations.add(opMemberDecorate, block, 0, asOffset, 0)
	if readOnly {
		m.decorations.add(opMemberDecorate, block, 0, asNonWritable)
	}
	id := m.variable(class, block)
	if class == classPush {
		return id
	}
	m.decorate(id, asDescriptorSet, 0)
	m.decorate(id, asBinding, uint32(number))
	return id
}

// input is the variable of a built-in input.
func (m *module) input(which uint32, t typ) uint32 {
	key := fmt.Sprint("input ", which)
	if id, ok := m.known[key]; ok {
		return id
	}
	id := m.variable(classInput, m.typ(t))
	m.known[key] = id
	m.decorate(id, asBuiltIn, which)
	return id
}

// extend adds an extension.
func (m *module) extend(name string) { m.extensions = append(m.extensions, name) }

// words is the finished module, of SPIR-V 1.5, which Vulkan 1.2 takes.
func (m *module) words(main uint32) []uint32 {
	const magic, version, generator, schema, addressing, simple, vulkan, computeShader = 0x07230203, 0x00010500, 0, 0, 0, 1, 3, 5
	w := code{magic, version, generator, m.last + 1, schema}
	for _, c := range m.capabilities {
		w.add(opCapability, c)
	}
	for _, x := range m.extensions {
		w.add(opExtension, text(x)...)
	}
	w.add(opExtInstImport, append([]uint32{m.glsl}, text("GLSL.std.450")...)...)
	model := uint32(simple)
	if m.half != none {
		model = vulkan
	}
	w.add(opMemoryModel, addressing, model)
	w.add(opEntryPoint, slices.Concat([]uint32{computeShader, main}, text("main"), m.variables)...)
	return slices.Concat(w, m.modes, m.decorations, m.globals, m.functions)
}

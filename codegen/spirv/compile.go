package spirv

import (
	"cmp"
	"fmt"
	"strconv"
)

// Floats is what a module demands of the arithmetic of float32, as far as the device can promise it.
type Floats struct {
	KeepNaN       bool // NaN, infinities and the sign of zero have their IEEE 754 meaning
	KeepDenormals bool
	Nearest       bool // results are rounded to nearest, ties to even
}

// Module is a compiled shader. Its entry point is "main".
type Module struct {
	Words    []uint32
	Group    int // invocations of a workgroup
	Shared   int // bytes of a workgroup's memory
	Pushed   int // bytes of run-time words that are push constants; 0 if the words are in a buffer
	Bindings map[int]Binding
	Matrices Matrices // zero if it has none
	Store16  bool     // bindings have elements of 16 bits
	Store8   bool     // bindings have elements of 8 bits
}

// Binding is the kind of a binding.
type Binding uint8

// Kinds of bindings.
const (
	Read Binding = iota
	Write
	Words
)

// Error says what is wrong with a text, and in which line.
type Error struct {
	Line int
	What string
}

func (e *Error) Error() string { return fmt.Sprintf("spirv: line %d: %s", e.Line, e.What) }

// Compile translates a text of the dialect. Run-time words of up to push bytes are push constants,
// longer ones are in a uniform buffer. A text that is invalid returns an *Error.
func Compile(source string, f Floats, push int) (mod *Module, err error) {
	c := &compiler{
		lexer: newLexer(source), module: newModule(), floats: f, push: push,
		scopes: []scope{{}}, out: Module{Bindings: map[int]Binding{}},
	}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			mod, err = nil, e
		}
	}()
	for c.token != "" {
		c.global()
	}
	if c.main == 0 {
		c.fail("no entry point")
	}
	c.out.Store16, c.out.Store8 = c.can(canStore16), c.can(canStore8)
	c.out.Words = c.words(c.main)
	return &c.out, nil
}

type compiler struct {
	lexer
	*module
	floats    Floats
	push      int
	out       Module
	scopes    []scope
	main      uint32 // the entry point
	subgroups bool   // operations on subgroups are allowed
	shuffles  bool   // and shuffles
	clusters  bool   // and clustered operations
	depth     int    // of nested expressions and blocks

	// The current function.
	result typ
	locals code // its variables
	body   code
	ended  bool // the current block has left the function or branched
}

// maxDepth bounds the compiler's stack, and maxCount the lengths in a text.
const (
	maxDepth = 200
	maxCount = 1 << 20
)

func (c *compiler) fail(format string, args ...any) {
	panic(&Error{c.line, fmt.Sprintf(format, args...)})
}

// symbol is the meaning of a name: a function, a variable or a value.
type symbol struct {
	function uint32
	params   []typ

	pointer uint32 // of a variable
	class   uint32
	array   bool // the variable is an array
	block   bool // the variable is a struct that contains the array
	atomic  bool // the array is accessed by atomic operations only
	fixed   bool // the variable is not assigned to
	narrow  kind // of the elements in memory, if they are narrower than the value; else none

	value value // of a name without a variable; else it has the type of the variable's elements
}

type scope map[string]*symbol

func (c *compiler) find(name string) *symbol {
	for i := len(c.scopes) - 1; i >= 0; i-- {
		if s := c.scopes[i][name]; s != nil {
			return s
		}
	}
	return nil
}

func (c *compiler) define(name string, s *symbol) { c.scopes[len(c.scopes)-1][name] = s }

// nested calls f in a scope of its own.
func (c *compiler) nested(f func()) {
	c.deeper()
	c.scopes = append(c.scopes, scope{})
	f()
	c.scopes = c.scopes[:len(c.scopes)-1]
	c.depth--
}

func (c *compiler) deeper() {
	if c.depth++; c.depth > maxDepth {
		c.fail("nested deeper than %d", maxDepth)
	}
}

// want skips a token that must be there.
func (c *compiler) want(token string) {
	if !c.skip(token) {
		c.fail("%q, want %q", c.token, token)
	}
}

func (c *compiler) name() string {
	if !isName(c.token) {
		c.fail("%q is not a name", c.token)
	}
	return c.take()
}

func (c *compiler) count() int {
	n, err := strconv.Atoi(c.token)
	if err != nil || n < 0 || n > maxCount {
		c.fail("%q is not a count", c.token)
	}
	c.next()
	return n
}

// length is a count above zero.
func (c *compiler) length() int {
	n := c.count()
	if n == 0 {
		c.fail("a length of 0")
	}
	return n
}

// typeOf is the type of a name among some types, as far as the text has declared it.
func (c *compiler) typeOf(name string, among ...map[string]typ) (t typ, ok bool) {
	for _, list := range among {
		if t, ok = list[name]; ok {
			break
		}
	}
	switch {
	case t.kind == wide:
		return t, c.wide != void
	case t.kind == half || t.kind == brain:
		return t, t.kind == c.half
	case t.kind > brain:
		return t, c.half != none
	}
	return t, ok
}

// oneOf reads a type that is among some types.
func (c *compiler) oneOf(among ...map[string]typ) typ {
	t, ok := c.typeOf(c.token, among...)
	if !ok {
		c.fail("%q is not a type", c.token)
	}
	c.next()
	return t
}

// anyType reads a type, and localType one that values of functions may have too.
func (c *compiler) anyType() typ   { return c.oneOf(types) }
func (c *compiler) localType() typ { return c.oneOf(types, halves, matrices) }

// number reads the type of a number.
func (c *compiler) number() typ {
	t := c.anyType()
	if !t.kind.number() {
		c.fail("no number: %v", t)
	}
	return t
}

// global reads a declaration outside of functions.
func (c *compiler) global() {
	switch word := c.take(); word {
	case "func":
		c.function()
		return
	case "main":
		c.entry()
		return
	case "subgroups":
		c.subgroups = true
		for _, x := range [...]uint32{canGroups, canGroupVote, canGroupArithmetic} {
			c.require(x)
		}
	case "shuffles":
		c.require(canGroups)
		c.require(canGroupShuffle)
		c.require(canGroupShuffleRelative)
		c.shuffles = true
	case "clusters":
		c.require(canGroupClustered)
		c.clusters = true
	case "read", "write", "atomic":
		number, name := c.count(), c.name()
		narrow := cells[c.token]
		t := narrow.as(unsigned)
		if narrow != void {
			c.next()
		} else {
			t = c.number()
		}
		c.bound(number, map[bool]Binding{true: Read, false: Write}[word == "read"])
		if word == "atomic" && (t != u32 || narrow != void) {
			c.fail("atomic %v", cmp.Or(narrow, t))
		}
		id := c.bind(number, classStorage, cmp.Or(narrow, t), 0, word == "read")
		c.define(name, &symbol{pointer: id, class: classStorage, array: true, block: true, atomic: word == "atomic", fixed: word == "read", narrow: narrow.kind, value: value{typ: t}})
	case "words":
		number, length := c.count(), c.length()
		c.bound(number, Words)
		if c.find("p") != nil {
			c.fail("the name p of run-time words is taken")
		}
		t, class := typ{unsigned, 4}, uint32(classUniform)
		if bytes := length * c.size(t); bytes <= c.push {
			class, c.out.Pushed = classPush, bytes
		}
		id := c.bind(number, class, t, length, false)
		c.define("p", &symbol{pointer: id, class: class, array: true, block: true, fixed: true, value: value{typ: t}})
	case "private":
		name, t := c.name(), c.anyType()
		c.define(name, &symbol{pointer: c.variable(classPrivate, c.typ(t)), class: classPrivate, value: value{typ: t}})
	case "shared":
		name, t, length := c.name(), c.oneOf(types, halves), c.length()
		c.out.Shared += length * c.size(t)
		id := c.variable(classWorkgroup, c.array(c.typ(t), length))
		c.define(name, &symbol{pointer: id, class: classWorkgroup, array: true, value: value{typ: t}})
	case "matrices":
		c.matrices()
	case "table":
		c.table()
	case "wide":
		if c.wide != void {
			c.fail("wide is declared twice")
		}
		t := c.number()
		if t.kind != unsigned {
			c.fail("wide of %v", t)
		}
		c.wide = t
	default:
		c.fail("%q is not a declaration", word)
	}
	c.want(";")
}

// bound notes a binding.
func (c *compiler) bound(number int, kind Binding) {
	if _, ok := c.out.Bindings[number]; ok {
		c.fail("binding %d is declared twice", number)
	}
	c.out.Bindings[number] = kind
}

// table reads constants behind the word "table".
func (c *compiler) table() {
	name, t, length := c.name(), c.number(), c.length()
	var list []uint32
	for i := range length {
		if i > 0 {
			c.want(",")
		}
		x := c.expr(0)
		if x.typ != t || !x.constant {
			c.fail("entry %d of a table is not a constant of type %v", i, t)
		}
		list = append(list, c.use(x))
	}
	of := c.array(c.typ(t), length)
	initial := c.unique(opConstantComposite, []uint32{of}, list...)
	c.define(name, &symbol{pointer: c.variable(classPrivate, of, initial), class: classPrivate, array: true, fixed: true, value: value{typ: t}})
}

// function reads a function behind its first word. It is not known to its own body, as SPIR-V has no
// recursion.
func (c *compiler) function() {
	name := c.name()
	s := &symbol{function: c.id()}
	var params code
	c.nested(func() {
		c.want("(")
		for !c.skip(")") {
			if len(s.params) > 0 {
				c.want(",")
			}
			p, t := c.name(), c.anyType()
			id := c.id()
			params.add(opFunctionParameter, c.typ(t), id)
			s.params = append(s.params, t)
			c.define(p, &symbol{value: value{typ: t, id: id}})
		}
		if c.token != "{" {
			s.value.typ = c.anyType()
		}
		c.begin(s.value.typ)
		c.want("{")
		c.block()
	})
	c.finish(s.function, s.params, params)
	c.define(name, s)
}

// entry reads the entry point behind its first word.
func (c *compiler) entry() {
	if c.main != 0 {
		c.fail("two entry points")
	}
	kind, at := c.take(), uint32(0)
	switch kind {
	case "invocations":
		at = inGlobalInvocationID
	case "groups":
		at = inWorkgroupID
	default:
		c.fail("%q is not a kind of entry point", kind)
	}
	c.out.Group = c.length()
	c.main = c.id()
	c.modes.add(opExecutionMode, c.main, modeLocalSize, uint32(c.out.Group), 1, 1)
	for _, x := range [...]struct {
		on               bool
		mode, capability uint32
	}{
		{c.floats.KeepDenormals, modeDenormPreserve, canDenormPreserve},
		{c.floats.KeepNaN, modeSignedZeroInfNanPreserve, canSignedZeroInfNanPreserve},
		{c.floats.Nearest, modeRoundingModeRTE, canRoundingModeRTE},
	} {
		if x.on {
			c.require(x.capability)
			c.modes.add(opExecutionMode, c.main, x.mode, 32)
		}
	}
	c.nested(func() {
		c.begin(void)
		place := typ{unsigned, 3}
		c.define("id", &symbol{value: c.readInput(at, place)})
		if kind == "groups" {
			// Shaders of subgroups renumber their lanes, so this is a variable.
			lane := c.local(c.typ(u32))
			c.body.add(opStore, lane, c.use(c.readInput(inLocalInvocationIndex, u32)))
			c.define("lane", &symbol{pointer: lane, class: classFunction, value: value{typ: u32}})
		}
		c.want("{")
		c.block()
	})
	c.finish(c.main, nil, nil)
}

func (c *compiler) readInput(which uint32, t typ) value {
	return c.emit(opLoad, t, c.input(which, t))
}

// begin starts the code of a function.
func (c *compiler) begin(result typ) {
	c.result, c.locals, c.body, c.ended = result, nil, nil, false
}

// finish adds the function whose code has been read.
func (c *compiler) finish(id uint32, params []typ, declared code) {
	switch {
	case c.ended:
	case c.result == void:
		c.body.add(opReturn)
	default:
		c.fail("the function ends without a return")
	}
	result := c.typ(c.result)
	signature := []uint32{result}
	for _, t := range params {
		signature = append(signature, c.typ(t))
	}
	c.functions.add(opFunction, result, id, 0, c.unique(opTypeFunction, nil, signature...))
	c.functions = append(c.functions, declared...)
	c.functions.add(opLabel, c.id())
	c.functions = append(append(c.functions, c.locals...), c.body...)
	c.functions.add(opFunctionEnd)
}

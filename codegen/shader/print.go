package shader

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// Prepare lowers a kernel for Print: ops with a spelling in this package stay whole.
func Prepare(k *codegen.Kernel) (*codegen.Kernel, error) {
	return codegen.LowerFor(k, func(in ir.Instr, first ir.DType) bool { return Keeps(in.Op, first) })
}

// Print writes a prepared kernel as a shader in d. The shader binds v.Bindings in order, then the
// buffer of run-time words. The error wraps ir.ErrUnsupported if shaders have no such operation.
func Print(d *Dialect, k *codegen.Kernel, v *Variant) (string, error) { return printUpTo(d, k, v, 0) }

// printUpTo is Print; if most is above 0, it panics with ErrNote as soon as the body is longer than
// that.
func printUpTo(d *Dialect, k *codegen.Kernel, v *Variant, most int) (string, error) {
	if len(v.Args) != len(k.Operands) {
		return "", fmt.Errorf("%s: the variant has %d args, the kernel %d operands", d.Name, len(v.Args), len(k.Operands))
	}
	p := &printer{
		Dialect: d, k: k, v: v, slots: v.slots(k), code: k.Body, lanes: v.Lanes, dims: v.Rank,
		out: new(strings.Builder), global: new(strings.Builder), made: map[string]bool{},
		uses: map[string]bool{}, single: map[string]bool{}, wide: new(bool), most: most,
	}
	for _, b := range v.Bindings {
		if b.Size > 0 && d.Types[b.element()] == "" {
			p.fail("elements of %d bytes: %w", b.Size, ir.ErrUnsupported)
		}
	}
	p.main()
	if p.err != nil {
		return "", p.err
	}
	return p.assemble(), nil
}

// printer writes one body: a kernel's, or that of a function it calls.
type printer struct {
	*Dialect
	k      *codegen.Kernel
	v      *Variant
	slots  slots
	code   []ir.Instr
	lanes  int
	dims   int      // number of outer dims whose coordinates determine positions
	rows   *rowPlan // of the kernel's body, if it has row ops
	still  []bool   // of the kernel's body: see the function still
	based  []bool   // operands that have a base: see bases
	words  []string // statements that set variables of run-time words: see private
	point  string   // the number of the present point of the row
	apart  string   // the same as a sum that ends with a constant; else ""
	masked bool     // lanes of the present step may be outside of the row: see ragged.go
	form   form

	out     *strings.Builder
	global  *strings.Builder // tables, workgroup memory, functions
	made    map[string]bool  // names that global has
	uses    map[string]bool  // helpers
	single  map[string]bool  // further helpers that functions of one lane call
	wide    *bool            // 64-bit values occur
	most    int              // limit of the length of out, if above 0
	indent  int
	vals    []string     // the text of each value of the body
	indexed map[int]bool // operands whose index is written, and complements of those whose position is
	err     error
}

func (p *printer) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%s: %w", p.Name, fmt.Errorf(format, args...))
	}
}

// f writes one line, a statement of the notation over p's lanes.
func (p *printer) f(format string, args ...any) {
	if p.most > 0 && p.out.Len() > p.most {
		panic(ErrNote)
	}
	for range p.indent {
		p.out.WriteByte('\t')
	}
	p.out.WriteString(p.line(fmt.Sprintf(format, args...), p.lanes))
	p.out.WriteByte('\n')
}

// open writes a line that begins a block, and end writes the line that ends it.
func (p *printer) open(format string, args ...any) {
	p.f(format, args...)
	p.indent++
}

func (p *printer) end() {
	p.indent--
	p.f("}")
}

// loop begins a loop with a counter.
func (p *printer) loop(name, first, end, step string) {
	p.open("for %s = %s; %s < %s; %s + %s {", name, first, name, end, name, step)
}

func (p *printer) assemble() string {
	var b strings.Builder
	v := p.v
	b.WriteString(p.head(v))
	global := func(form string, args ...any) {
		text := make([]string, len(args))
		for i, a := range args {
			text[i] = fmt.Sprint(a)
		}
		b.WriteString(p.fill(form, 1, text...) + "\n")
	}
	if x := v.Tile.Matrix; x != (Matrix{}) {
		global(p.Matrices, x.M, x.N, x.K, halfTypes[x.Of])
	}
	for i, x := range v.Bindings {
		name, lanes, form := fmt.Sprintf("b%d", i), 1, p.Read
		switch {
		case x.Faults:
			global(p.Faults, i, faultsName)
			continue
		case x.Write:
			form = p.ReadWrite
		}
		if x.Vec {
			lanes = 4
		}
		global(form, i, name, p.vec(x.element(), lanes))
	}
	global(p.Words, len(v.Bindings), p.slots.total/4)
	list := withHelpers(p.uses)
	if *p.wide || usesWide(list) {
		b.WriteByte('\n')
		global(p.Wide, p.vec("u32", v.Lanes))
	}
	for _, h := range list {
		b.WriteString(p.block(h.text, v.Lanes))
	}
	for _, h := range withHelpers(p.single) {
		b.WriteString(forOneLane(p.block(h.text, 1)))
	}
	b.WriteString(p.global.String())
	b.WriteString("\n" + p.out.String())
	return b.String()
}

func (p *printer) main() {
	switch p.v.Mode {
	case Map:
		p.mapMain()
	case Tiles:
		p.tileMain()
	case Checks:
		p.checkMain()
	case Scatters:
		p.scatterMain()
	default:
		p.rowMain()
	}
}

// begin begins the entry point of a shader with one unit of work, number i, per invocation or per
// workgroup.
func (p *printer) begin(groups bool) {
	form := p.Invocations
	if groups {
		form = p.Groups
	}
	p.out.WriteString(p.fill(form, 1, fmt.Sprint(p.v.Group)) + "\n")
	p.indent++
	p.f("let i $u32 = id.y * %s + id.x;", runWord(wordWidth))
	first := "i"
	if p.v.Abreast > 0 {
		first = fmt.Sprintf("i * %du", p.v.Abreast)
	}
	p.open("if (%s >= %s) {", first, runWord(wordCount))
	p.f("return;")
	p.end()
}

func (p *printer) mapMain() {
	if p.v.staged() {
		p.turnMain()
		return
	}
	p.begin(false)
	switch {
	case p.v.Turn > 0:
		p.hoist(p.turnSteps)
	case p.v.Steps > 1:
		p.hoist(p.mapSteps)
	default:
		p.coords("i", 0, p.v.Rank)
		p.mapBody()
	}
	p.end()
}

// mapBody prints the computation of the point or vector at the present coordinates.
func (p *printer) mapBody() {
	if p.v.Ragged {
		p.f("let inside $U = min($U(c%d * %du) + $U(0u, 1u, 2u, 3u), $U(%s - 1u));", p.v.Rank-1, p.lanes, runWord(wordInner))
	}
	p.body()
	for _, s := range p.k.Stores {
		p.store(s.Operand, p.value(s.Value), p.k.Body[s.Value].DT)
	}
}

// mapSteps prints the computation of several points or vectors of an invocation. They are so far
// apart that neighbouring invocations have neighbouring ones. A loop with a constant end is
// cheaper.
func (p *printer) mapSteps() {
	count := runWord(wordCount)
	if p.v.Exact {
		p.loop("j", "0u", fmt.Sprintf("%du", p.v.Steps), "1u")
		p.f("let at $u32 = i + j * %s;", count)
	} else {
		p.loop("at", "i", runWord(wordSteps), count)
	}
	p.coords("at", 0, p.v.Rank)
	p.mapBody()
	p.end()
}

var runWords = regexp.MustCompile(`\bp\[(\d+)\]\.([xyzw])`)

// hoist prints loops, and before them reads of the run-time words that they use. Compilers of
// software adapters would read a word, with a bounds check, at each use.
func (p *printer) hoist(loops func()) {
	out := p.out
	p.out = new(strings.Builder)
	loops()
	text := p.out.String()
	p.out = out
	words := runWords.FindAllString(text, -1)
	slices.Sort(words)
	for _, w := range slices.Compact(words) {
		p.f("let %s $u32 = %s;", runWords.ReplaceAllString(w, "w$1$2"), w)
	}
	p.out.WriteString(runWords.ReplaceAllString(text, "w$1$2"))
}

// body writes every value, with the names in vals.
func (p *printer) body() {
	p.vals = make([]string, len(p.code))
	for i := range p.code {
		p.instr(i)
	}
}

// instr writes one instruction. Constants get no line: they are written at each use.
func (p *printer) instr(i int) {
	in := p.code[i]
	if scalarTypes[in.DT] == "" {
		p.fail("%v has no %s type: %w", in.DT, strings.ToUpper(p.Name), ir.ErrUnsupported)
		return
	}
	*p.wide = *p.wide || isWide(in.DT)
	name := fmt.Sprintf("v%d", i)
	p.vals[i] = name
	lanes := p.lanes
	switch in.Op {
	case ir.Param:
		p.vals[i] = fmt.Sprintf("x%d", in.Imm)
	case ir.Const:
		p.vals[i] = "" // see value
	case ir.Load:
		text := p.load(int(in.Imm), in.DT)
		if guard := in.Args[0]; guard != ir.None { // elements read outside are not used
			text = p.call("select", lanes, p.literal(in.DT, 0, lanes), text, p.value(guard))
		}
		p.let(name, in.DT, text)
	case ir.LoadAt:
		p.loadAt(i, in)
	case ir.Scalar:
		p.let(name, in.DT, p.scalar(int(in.Imm), in.DT))
	case ir.IndexLo:
		p.let(name, in.DT, p.indexLow(int(in.Imm)))
	case ir.IndexHi:
		p.let(name, in.DT, p.indexHigh(int(in.Imm)))
	case ir.Rare:
		p.rare(i, in)
	default:
		args := p.args(in)
		p.let(name, in.DT, p.spell(in, args, p.argDTypes(in), lanes))
	}
}

// let names a value of dt over p's lanes.
func (p *printer) let(name string, dt ir.DType, text string) {
	p.f("let %s %s = %s;", name, p.vec(scalarTypes[dt], p.lanes), text)
}

func (p *printer) args(in ir.Instr) []string {
	var args []string
	for _, a := range in.Args {
		if a != ir.None {
			args = append(args, p.value(a))
		}
	}
	return args
}

func (p *printer) argDTypes(in ir.Instr) []ir.DType {
	var dts []ir.DType
	for _, a := range in.Args {
		if a != ir.None {
			dts = append(dts, p.code[a].DT)
		}
	}
	return dts
}

// spell is the expression of an op.
func (p *printer) spell(in ir.Instr, args []string, dts []ir.DType, lanes int) string {
	fill := func(text string) string {
		return p.fill(strings.ReplaceAll(text, "$T", p.vec(scalarTypes[in.DT], lanes)), lanes, args...)
	}
	switch in.Op {
	case ir.Where:
		if isWide(in.DT) {
			return fill("wide($select($2.l, $1.l, $0), $select($2.h, $1.h, $0))")
		}
		if i := p.extreme(in); i > 0 {
			p.use("mr_keep")
			args[i] = "mr_keep(" + args[i] + ")"
		}
		return fill("$select($2, $1, $0)")
	case ir.Convert:
		text, uses, ok := convert(in.DT, dts[0], "$0")
		if !ok {
			break
		}
		p.use(uses)
		return fill(text)
	case ir.Bitcast:
		if in.DT.Storage() || dts[0].Storage() {
			return fill(fit(in.DT, dts[0], "$0"))
		}
		if scalarTypes[in.DT] == scalarTypes[dts[0]] {
			return args[0]
		}
		if isWide(in.DT) || isWide(dts[0]) {
			break
		}
		return fill("$bits($T, $0)")
	case ir.Lookup:
		return p.lookup(in, args[0], lanes)
	}
	if x, ok := selves[in.Op]; ok && in.Args[0] == in.Args[1] && len(dts) > 0 && dts[0] == ir.Float32 {
		p.use(x.uses)
		return fill(x.text)
	}
	if form, ok := functions[in.Op]; ok && len(dts) > 0 && dts[0] == ir.Float32 {
		return p.function(in, dts, form) + "(" + strings.Join(args, ", ") + ")"
	}
	if len(dts) > 0 {
		if s, ok := find(in.Op, dts[0]); ok {
			text, uses := s.text, s.uses
			if e, ok := exactly[in.Op]; ok && p.form != plain && dts[0] == ir.Float32 {
				text, uses = e[p.form].text, e[p.form].uses
			}
			p.use(uses)
			return fill(text)
		}
	}
	p.fail("%v of %v to %v: %w", in.Op, dts, in.DT, ir.ErrUnsupported)
	return args[0]
}

// extreme finds a Where of two floats by their comparison. Compilers replace it by a minimum or
// maximum, which loses NaN. It returns the argument to hide from them, a constant if there is one,
// or 0.
func (p *printer) extreme(in ir.Instr) int {
	c := p.code[in.Args[0]]
	x, y := in.Args[1], in.Args[2]
	switch c.Op {
	case ir.Lt, ir.Le, ir.Gt, ir.Ge:
	default:
		return 0
	}
	same := c.Args[0] == x && c.Args[1] == y || c.Args[0] == y && c.Args[1] == x
	switch {
	case in.DT != ir.Float32 || !same || x == y:
		return 0
	case p.code[x].Op == ir.Const:
		return 1
	}
	return 2
}

// bits is the bits of x as those of a type.
func (p *printer) bits(typ, x string) string { return p.call("bits", 1, typ, x) }

func (p *printer) use(helper string) {
	if helper != "" {
		p.uses[helper] = true
	}
}

// scalar reads a run-time scalar into every lane.
func (p *printer) scalar(slot int, dt ir.DType) string {
	at, lanes := p.slots.scalars[slot], p.lanes
	w := runWord(at)
	switch {
	case isWide(dt):
		return fmt.Sprintf("wide(%s, %s)", p.splat(w, "u32", lanes), p.splat(runWord(at+1), "u32", lanes))
	case dt == ir.Bool:
		w += " != 0u"
	case scalarTypes[dt] != "u32":
		w = p.bits(p.vec(scalarTypes[dt], 1), w)
	}
	return p.splat(w, scalarTypes[dt], lanes)
}

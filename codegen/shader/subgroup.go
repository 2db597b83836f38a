package shader

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// With Variant.Subgroups the results of a row's invocations are combined in registers first, over
// subgroups, whose invocations run in step. The results of the subgroups are then combined through
// workgroup memory, behind one barrier. The shader asks the device for the number and the members
// of subgroups where it needs them; subgroups need not have equal sizes.

// overSubgroup spells reductions over a subgroup, by the op that joins two values. Drivers differ
// in their handling of NaN in a maximum of floats, so maxima are taken of unsigned numbers in the
// same order. $1 is empty, or the size of clusters.
var overSubgroup = []spelling{
	{ir.Add, f32s | words, "subgroupAdd($0$1)", ""},
	{ir.Add, u8s, "subgroupAdd($0$1) & $U(255u)", ""},
	{ir.Mul, f32s | words, "subgroupMul($0$1)", ""},
	{ir.Mul, u8s, "subgroupMul($0$1) & $U(255u)", ""},
	{ir.Maximum, f32s, "mr_unorder(subgroupMax(mr_order($0)$1))", "mr_unorder"},
	{ir.Minimum, f32s, "-mr_unorder(subgroupMax(mr_order(-$0)$1))", "mr_unorder"},
	{ir.Maximum, words | u8s, "subgroupMax($0$1)", ""},
	{ir.Minimum, words | u8s, "subgroupMin($0$1)", ""},
	{ir.Or, bools, "subgroupAny($0$1)", ""},
	{ir.And, bools, "subgroupAll($0$1)", ""},
}

// joined is the spelling for a row op of values of dt.
func joined(op ir.Op, dt ir.DType) (spelling, bool) {
	for _, s := range overSubgroup {
		if s.op == op.Info().Combine && s.in.Has(dt) {
			return s, true
		}
	}
	return spelling{}, false
}

// HasSubgroups reports that a kernel's reductions and scans can go over subgroups: those of 64-bit
// values cannot.
func (d *Dialect) HasSubgroups(k *codegen.Kernel) bool {
	for _, in := range k.Body {
		if c := in.Op.Class(); c != ir.ClassReduce && c != ir.ClassScan || in.Op.Info().Position {
			continue
		}
		if _, ok := joined(in.Op, k.Body[in.Args[0]].DT); !ok {
			return false
		}
	}
	return d.Subgroups != ""
}

// foldSubgroups combines o<i> over the workgroup.
func (p *printer) foldSubgroups(folds []int) {
	for _, i := range folds {
		o := fmt.Sprintf("o%d", i)
		if p.code[i].Op.Info().Position {
			p.f("let top%d $U = subgroupMax(%s);", i, o)
			p.f("on%d = subgroupMin($select(0xffffffffu, on%d, $eq(top%d, %s)));", i, i, i, o)
			p.f("%s = top%d;", o, i)
			continue
		}
		p.f("%s = %s;", o, p.overSubgroup(i, o, "subgroup", ""))
	}
	p.open("if ($subgroups() > 1u) {")
	p.open("if (subgroupElect()) {")
	p.share(folds, "w", "$subgroup()", p.v.Group)
	p.end()
	p.f("barrier;")
	p.gather(folds, "w", 1)
	p.loop("s", "1u", "$subgroups()", "1u")
	for _, i := range folds {
		p.take(i, p.taken(i, fmt.Sprintf("w%d[s]", i)), fmt.Sprintf("wn%d[s]", i))
	}
	p.end()
	p.end()
}

// overSubgroup is the result of row op i for x over a subgroup. prefix chooses the functions:
// subgroupExclusive covers only the invocations before this one, subgroupClustered needs the text
// size of the clusters.
func (p *printer) overSubgroup(i int, x, prefix, size string) string {
	in := p.code[i]
	s, ok := joined(in.Op, p.code[in.Args[0]].DT)
	if !ok {
		p.fail("%v of %v by subgroups: %w", in.Op, p.code[in.Args[0]].DT, ir.ErrUnsupported)
	}
	p.use(s.uses)
	return p.fill(strings.Replace(s.text, "subgroup", prefix, 1), p.lanes, x, size)
}

// scanSubgroups sets e<i> to the result of a scan of x before this invocation, and updates the
// scan's state.
func (p *printer) scanSubgroups(i int, x, state, w string) {
	in := p.code[i]
	p.f("let t%d %s = %s;", i, p.vec(scalarTypes[in.DT], 1), p.overSubgroup(i, x, "subgroup", ""))
	p.f("let before%d %s = %s;", i, p.vec(scalarTypes[in.DT], 1), p.overSubgroup(i, x, "subgroupExclusive", ""))
	p.open("if (subgroupElect()) {")
	p.f("%s[$subgroup()] = t%d;", w, i)
	p.end()
	p.f("barrier;")
	p.f("var e%d %s = %s;", i, p.vec(scalarTypes[in.DT], 1), state)
	p.loop("s", "0u", "$subgroups()", "1u")
	p.f("e%d = $select(e%d, %s, $eq(s, $subgroup()));", i, i, state)
	p.f("%s = %s;", state, p.combine(in, state, w+"[s]"))
	p.end()
	p.f("e%d = $select(%s, e%d, subgroupElect());", i, p.combine(in, fmt.Sprintf("e%d", i), fmt.Sprintf("before%d", i)), i)
}

// bySubgroups renumbers the invocations of a workgroup: those of a subgroup get consecutive
// numbers, which scans over subgroups need. Languages do not guarantee this for the original
// numbers.
func (p *printer) bySubgroups() {
	p.workgroup("many", p.vec("u32", 1), p.v.Group)
	p.f("let own $u32 = subgroupAdd(1u);")
	p.open("if (subgroupElect()) {")
	p.f("many[$subgroup()] = own;")
	p.end()
	p.f("barrier;")
	p.f("lane = subgroupExclusiveAdd(1u);")
	p.loop("s", "0u", "$subgroup()", "1u")
	p.f("lane = lane + many[s];")
	p.end()
}

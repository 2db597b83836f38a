package shader

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// Rows are sorted by a bitonic network over pairs. A pair has a key, which is an unsigned number in
// the required order, and the element's position. No two pairs are equal. So the network, which is
// not stable, gives the only possible order, which is that of a stable sort. Rows are padded to a
// power of two with pairs that sort last. Steps of the network within SortBlock pairs run in
// workgroup memory.

// SortBlock is the number of pairs that a workgroup sorts by itself.
const SortBlock = 1024

// SortGroup is the number of invocations of a workgroup of every sorting shader.
const SortGroup = 64

// SortStep is one of the shaders that sort.
type SortStep uint8

const (
	SortKeys  SortStep = iota // elements become pairs: bindings elements, keys, positions
	SortLocal                 // the steps from From to To within blocks: bindings keys, positions
	SortWide                  // one exchange over Distance: bindings keys, positions
	SortTake                  // elements in order: bindings elements, positions, result
	SortPlace                 // their positions: bindings positions, result
)

// SortWords are a sorting shader's run-time words.
type SortWords struct {
	Count    uint32 // invocations that have work, workgroups for SortLocal
	Width    uint32 // invocations or workgroups per row of the grid
	Row      uint32 // elements of a row
	Padded   uint32 // pairs of a row, a power of two
	From, To uint32 // sizes of the sorted runs that are merged; SortWide has one
	Distance uint32
	Elements uint32 // where the first row's elements start
	Result   uint32 // where its result starts
}

// Pack appends the words to dst.
func (w *SortWords) Pack(dst []uint32) []uint32 {
	return append(dst, w.Count, w.Width, w.Row, w.Padded, w.From, w.To, w.Distance, w.Elements, w.Result, 0, 0, 0)
}

// sortBindings names each step's bindings; those behind the bar are written.
var sortBindings = [...]string{
	SortKeys:  "elements|keys positions",
	SortLocal: "|keys positions",
	SortWide:  "|keys positions",
	SortTake:  "elements positions|result",
	SortPlace: "positions|result",
}

// narrowBindings names those of each step that hold elements; the others hold words.
var narrowBindings = [...]string{SortKeys: "elements", SortTake: "elements result", SortPlace: ""}

// Print writes the shader of a step in d. bindings are those before the buffer of run-time words.
func (x SortShader) Print(d *Dialect) (source string, bindings []Binding, err error) {
	step := x.Step
	var b strings.Builder
	b.WriteString(d.head(&Variant{}))
	u := d.vec("u32", 1)
	global := func(form string, args ...string) { b.WriteString(d.fill(form, 1, args...) + "\n") }
	read, written, _ := strings.Cut(sortBindings[step], "|")
	for i, names := range []string{read, written} {
		for _, name := range strings.Fields(names) {
			y := Binding{Write: i == 1, DT: ir.Uint32}
			if slices.Contains(strings.Fields(narrowBindings[step]), name) {
				y.Size = x.Size
			}
			if d.Types[y.element()] == "" {
				return "", nil, fmt.Errorf("%s: sort of elements of %d bytes: %w", d.Name, x.Size, ir.ErrUnsupported)
			}
			global([...]string{d.Read, d.ReadWrite}[i], fmt.Sprint(len(bindings)), name, d.vec(y.element(), 1))
			bindings = append(bindings, y)
		}
	}
	global(d.Words, fmt.Sprint(len(bindings)), "3")
	begin, text := d.Invocations, sortTexts[step]
	switch step {
	case SortKeys:
		key, ok := sortKeys[scalarTypes[x.DT]]
		if !ok {
			return "", nil, fmt.Errorf("%s: sort of %v: %w", d.Name, x.DT, ir.ErrUnsupported)
		}
		if x.Size > 0 { // the element has zeros in front, not its sign
			key = strings.Replace(key, "b ^ 0x80000000u", "b ^ "+word(1<<(8*x.Size-1)), 1)
		}
		if x.Descending {
			key = strings.Replace(key, "return k;", "return ~k;", 1)
		}
		b.WriteString(d.block(key, 1))
	case SortLocal:
		begin = d.Groups
		for _, name := range []string{"k", "n"} {
			b.WriteByte('\n')
			global(d.Shared, name, u, fmt.Sprint(SortBlock))
		}
	}
	b.WriteByte('\n')
	global(begin, fmt.Sprint(SortGroup))
	b.WriteString(d.block(strings.NewReplacer("BLOCK", fmt.Sprint(SortBlock), "GROUP", fmt.Sprint(SortGroup)).Replace(text), 1))
	return b.String(), bindings, nil
}

// sortKeys are ir.SortKey for the types that words hold.
var sortKeys = map[string]string{
	"f32": `
func key(b $u32) $u32 {
	if ((b & 0x7fffffffu) > 0x7f800000u) {
		return 0xffffffffu;
	}
	let k $u32 = $select(b ^ 0x80000000u, ~b, $ge(b, 0x80000000u));
	return k;
}
`,
	"i32": `
func key(b $u32) $u32 {
	let k $u32 = b ^ 0x80000000u;
	return k;
}
`,
	"u32": `
func key(b $u32) $u32 {
	let k $u32 = b;
	return k;
}
`,
}

const sortMain = `	let t $u32 = id.y * p[0].y + id.x;
	if (t >= p[0].x) {
		return;
	}
`

var sortTexts = [...]string{
	SortKeys: sortMain + `	let i $u32 = t & (p[0].w - 1u);
	let row $u32 = t / p[0].w;
	var k $u32 = 0xffffffffu;
	if (i < p[0].z) {
		k = key(elements[p[1].w + row * p[0].z + i]);
	}
	keys[t] = k;
	positions[t] = i;
}
`,
	SortWide: sortMain + `	let j $u32 = p[1].z;
	let a $u32 = 2u * t - (t & (j - 1u));
	let b $u32 = a + j;
	let ka $u32 = keys[a];
	let kb $u32 = keys[b];
	let na $u32 = positions[a];
	let nb $u32 = positions[b];
	let later $bool = ka > kb || (ka == kb && na > nb);
	if (later == ((a & (p[0].w - 1u) & p[1].x) == 0u)) {
		keys[a] = kb;
		keys[b] = ka;
		positions[a] = nb;
		positions[b] = na;
	}
}
`,
	SortLocal: `	let block $u32 = id.y * p[0].y + id.x;
	if (block >= p[0].x) {
		return;
	}
	let first $u32 = block * BLOCKu;
	for i = lane; i < BLOCKu; i + GROUPu {
		k[i] = keys[first + i];
		n[i] = positions[first + i];
	}
	barrier;
	for s = p[1].x; s <= p[1].y; s * 2u {
		for j = min(s, BLOCKu) / 2u; j > 0u; j / 2u {
			for t = lane; t < BLOCKu / 2u; t + GROUPu {
				let a $u32 = 2u * t - (t & (j - 1u));
				let b $u32 = a + j;
				let ka $u32 = k[a];
				let kb $u32 = k[b];
				let na $u32 = n[a];
				let nb $u32 = n[b];
				let later $bool = ka > kb || (ka == kb && na > nb);
				if (later == (((first + a) & (p[0].w - 1u) & s) == 0u)) {
					k[a] = kb;
					k[b] = ka;
					n[a] = nb;
					n[b] = na;
				}
			}
			barrier;
		}
	}
	for i = lane; i < BLOCKu; i + GROUPu {
		keys[first + i] = k[i];
		positions[first + i] = n[i];
	}
}
`,
	SortTake: sortMain + `	let row $u32 = t / p[0].z;
	let i $u32 = t - row * p[0].z;
	result[p[2].x + t] = elements[p[1].w + row * p[0].z + positions[row * p[0].w + i]];
}
`,
	SortPlace: sortMain + `	let row $u32 = t / p[0].z;
	let i $u32 = t - row * p[0].z;
	result[p[2].x + t] = positions[row * p[0].w + i];
}
`,
}

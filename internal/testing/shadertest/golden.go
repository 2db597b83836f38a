package shadertest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/internal/testing/golden"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
)

// Golden runs a folder of cases: a kernel and a variant in, a shader out. A case
// begins "print MODE RANK KEPT LANES [across] [tail|ragged] [group=8] [each=2|16] [steps=4] [turn=1] [online=1|2] [subgroups] [narrow] [abreast=ROWS] [beside=ROWS] [cluster=INVOCATIONS] [clustered] OPERAND…" with MODE map
// (exact may follow), rows (unroll=2 and exact may follow), cols, tiles (then m=DIMS n=DIMS [alongA] [alongB] [looped] [f16|bf16] [parts=2|3] [wideA] [wideB] [ahead] follow), checks or scatters and one OPERAND per operand of the kernel: its class (c contiguous,
// b broadcast, s strided, v staged), its binding (- for an index), and after
// commas vec, still, turned, skip, guard=BITS, stages=RANK+RANK or parts=N for bindings of 64 units. A case "sort STEP DTYPE [descending] [narrow]" is a shader of a sort.
//
// Together the cases hold every op of the table. The texts are shown without the
// dialect's header and helpers, and returned whole, in their order, empty where the
// dialect has no such shader.
func Golden(t *testing.T, d *shader.Dialect, dir string) (texts []string) {
	t.Helper()
	seen := kernels.Seen{}
	shown := func(text string) string {
		texts = append(texts, text)
		head, rest, ok := strings.Cut(text, d.Helpers)
		extensions, begun := strings.CutPrefix(head, d.Header)
		if !ok || !begun {
			t.Errorf("no header in\n%s", text)
		}
		return extensions + rest
	}
	golden.Run(t, dir, map[string]golden.Handler{"print": func(t *testing.T, c *golden.Case) string {
		k, err := codegen.Parse(c.Input)
		if err != nil {
			t.Fatalf("%s:%d: %v", c.File, c.Line, err)
		}
		v, err := parseVariant(k, c.Args)
		if err != nil {
			t.Fatalf("%s:%d: %v", c.File, c.Line, err)
		}
		seen.Add(k)
		if k, err = shader.Prepare(k); err != nil {
			return "error: " + err.Error()
		}
		seen.Add(k)
		for _, in := range k.Body {
			if shader.AsFunction(in.Op) { // its expansion becomes one
				seen.Code(ir.Expansion(in.Op, in.DT, []ir.DType{ir.Float32, ir.Float32}[:in.Op.Info().Arity]).Code)
			}
		}
		text, err := shader.Print(d, k, v)
		if err != nil {
			texts = append(texts, "")
			return "error: " + err.Error()
		}
		return shown(text)
	}, "sort": func(t *testing.T, c *golden.Case) string {
		step := slices.Index([]string{"keys", "local", "wide", "take", "place"}, c.Args[0])
		dt, ok := ir.ParseDType(c.Args[1])
		if step < 0 || !ok {
			t.Fatalf("%s:%d: bad case", c.File, c.Line)
		}
		if done, ok := map[shader.SortStep]ir.Op{shader.SortTake: ir.Sort, shader.SortPlace: ir.ArgSort}[shader.SortStep(step)]; ok {
			seen[done] = true
		}
		x := shader.SortShader{Step: shader.SortStep(step), DT: dt}
		for _, w := range c.Args[2:] {
			if x.Descending = x.Descending || w == "descending"; w == "narrow" {
				x.Size = uint8(dt.Size())
			}
		}
		text, _, err := x.Print(d)
		if err != nil {
			return "error: " + err.Error()
		}
		return shown(text)
	}})
	for _, op := range seen.Missing(ir.LoadAt, ir.Scatter) {
		t.Errorf("no case holds %v: write one into %s and run the test with -update", op, dir)
	}
	return texts
}

// matrices makes a tile of two by two subgroups, each with two by one matrices.
func matrices(v *shader.Variant, of ir.DType) {
	t := &v.Tile
	t.M, t.N, t.K, t.RowsPer, t.ColsPer = 64, 32, 32, 32, 16
	t.Matrix = shader.Matrix{M: 16, N: 16, K: 16, Lanes: 32, Of: of}
	v.Group = t.Group()
}

func parseVariant(k *codegen.Kernel, words []string) (*shader.Variant, error) {
	mode := slices.Index([]string{"map", "rows", "cols", "tiles", "checks", "scatters"}, words[0])
	if mode < 0 || len(words) < 4 {
		return nil, fmt.Errorf("bad variant %v", words)
	}
	v := &shader.Variant{Mode: shader.Mode(mode), Group: 64}
	for i, p := range []*int{&v.Rank, &v.Kept, &v.Lanes} {
		n, err := strconv.Atoi(words[i+1])
		if err != nil {
			return nil, err
		}
		*p = n
	}
	words = words[4:]
	if len(words) > 0 && words[0] == "across" {
		v.Across, words = true, words[1:]
	}
	if len(words) > 0 && words[0] == "tail" {
		v.Tail, words = true, words[1:]
	}
	if len(words) > 0 && words[0] == "ragged" {
		v.Tail, v.Ragged, words = v.Mode == shader.Map, true, words[1:]
	}
	narrow := false // elements of 8 and 16 bits are stored in their own size
	for _, f := range []struct {
		text string
		set  func()
	}{{"group=8", func() { v.Group = 8 }}, {"each=2", func() { v.Each = 2 }}, {"each=16", func() { v.Each = 16 }}, {"steps=4", func() { v.Steps = 4 }}, {"turn=1", func() { v.Turn = 1 }}, {"online=1", func() { v.Online = 1 }}, {"online=2", func() { v.Online = 2 }}, {"subgroups", func() { v.Subgroups = true }}, {"narrow", func() { narrow = true }}} {
		if len(words) > 0 && words[0] == f.text {
			f.set()
			words = words[1:]
		}
	}
	for ; len(words) > 0; words = words[1:] {
		if words[0] == "clustered" {
			v.Clustered = true
			continue
		}
		name, value, _ := strings.Cut(words[0], "=")
		to, ok := map[string]*int{"abreast": &v.Abreast, "beside": &v.Beside, "cluster": &v.Cluster}[name]
		if !ok {
			break
		}
		var err error
		if *to, err = strconv.Atoi(value); err != nil {
			return nil, err
		}
	}
	for len(words) > 0 && (words[0] == "unroll=2" || words[0] == "exact") {
		if v.Mode == shader.Rows {
			v.Unroll = 2
		}
		v.Exact, words = words[0] == "exact", words[1:]
	}
	if v.Mode == shader.Tiles {
		v.Tile = shader.Tile{M: 16, N: 16, K: 2, RowsPer: 4, ColsPer: 8}
		v.Group = v.Tile.Group()
		for _, f := range []struct {
			text string
			set  func()
		}{
			{"m=1", func() { v.Tile.MDims = 1 }}, {"n=1", func() { v.Tile.NDims = 1 }},
			{"alongA", func() { v.Tile.AlongA = true }}, {"alongB", func() { v.Tile.AlongB = true }},
			{"looped", func() { v.Tile.Looped = true }},
			{"f16", func() { matrices(v, ir.Float16) }}, {"bf16", func() { matrices(v, ir.BFloat16) }},
			{"parts=2", func() { v.Tile.Matrix.Parts = 2 }}, {"parts=3", func() { v.Tile.Matrix.Parts = 3 }},
			{"wideA", func() { v.Tile.WideA = true }}, {"wideB", func() { v.Tile.WideB = true }}, {"ahead", func() { v.Tile.Ahead = true }},
		} {
			if len(words) > 0 && words[0] == f.text {
				f.set()
				words = words[1:]
			}
		}
	}
	if len(words) != len(k.Operands) {
		return nil, fmt.Errorf("%d operands were given, the kernel has %d", len(words), len(k.Operands))
	}
	for i, w := range words {
		parts := strings.Split(w, ",")
		a := shader.Arg{Class: codegen.AccessClass(strings.IndexByte("cbsv", parts[0][0])), Binding: -1}
		if parts[0][1:] != "-" {
			n, err := strconv.Atoi(parts[0][1:])
			if err != nil {
				return nil, err
			}
			a.Binding = n
		}
		for _, p := range parts[1:] {
			name, value, _ := strings.Cut(p, "=")
			switch name {
			case "vec":
				a.Vec = true
			case "turned":
				a.Turned = true
			case "skip":
				a.Skip = true
			case "still":
				a.Still = true
			case "guard":
				n, err := strconv.ParseUint(value, 2, 32)
				if err != nil {
					return nil, err
				}
				a.Guard = uint32(n)
			case "parts":
				n, err := strconv.Atoi(value)
				if err != nil {
					return nil, err
				}
				a.Parts, a.Part = n, 64
			case "stages":
				for _, s := range strings.Split(value, "+") {
					n, err := strconv.Atoi(s)
					if err != nil {
						return nil, err
					}
					a.Stages = append(a.Stages, n)
				}
			}
		}
		v.Args = append(v.Args, a)
		if a.Binding < 0 {
			continue
		}
		for len(v.Bindings) < a.Binding+max(a.Parts, 1) {
			v.Bindings = append(v.Bindings, shader.Binding{DT: ir.NumDTypes, Vec: true})
		}
		for j := range max(a.Parts, 1) {
			b, o := &v.Bindings[a.Binding+j], k.Operands[i]
			b.Write = b.Write || o.Kind == codegen.Output
			b.Vec = b.Vec && a.Vec
			if n := o.DT.Size(); narrow && n < shader.ElemSize {
				b.Size = uint8(n)
			}
			if b.DT == ir.NumDTypes {
				b.DT = o.DT
			} else if b.DT != o.DT {
				b.DT = ir.Invalid
			}
		}
	}
	for side, wide := range []bool{v.Tile.WideA, v.Tile.WideB} {
		if ready, err := shader.Prepare(k); err == nil && wide {
			if o := shader.WideOperand(ready, &v.Tile.Matrix, side); o >= 0 {
				v.Bindings[v.Args[o].Binding].Vec = true
			}
		}
	}
	v.Indexed(k)
	return v, nil
}

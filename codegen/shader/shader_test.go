package shader

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// TestFloatLiterals checks that a literal reads back as the bits from which it was made.
func TestFloatLiterals(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	bits := []uint32{0, 1 << 31, 1, 0x807fffff, 0x3f800000, 0x7f7fffff, 0x4b800000, 0x00800000}
	for range 10000 {
		bits = append(bits, rng.Uint32())
	}
	for _, b := range bits {
		s := strings.Trim(other.floatLiteral(b), "()")
		if f := math.Float32frombits(b); math.IsInf(float64(f), 0) || f != f {
			if !strings.HasPrefix(s, "as_float(") {
				t.Errorf("%#x: %s", b, s)
			}
			continue
		}
		if !strings.ContainsAny(s, ".e") {
			t.Errorf("%#x: %s would be an integer", b, s)
		}
		f, err := strconv.ParseFloat(s, 32)
		if err != nil || math.Float32bits(float32(f)) != b {
			t.Errorf("%#x: %s reads back as %v, %v", b, s, f, err)
		}
	}
}

// TestKeys checks that every change of a shader's text changes its variant's key.
func TestKeys(t *testing.T) {
	base := func() *Variant {
		return &Variant{Rank: 2, Kept: 2, Lanes: 4, Group: 64,
			Args:     []Arg{{Stages: []int{2}}, {Binding: 1, Vec: true}},
			Bindings: []Binding{{DT: ir.Float32}, {DT: ir.Float32, Vec: true}}}
	}
	seen := map[string]string{base().Key(): "the base"}
	for name, change := range map[string]func(*Variant){
		"mode":       func(v *Variant) { v.Mode = Rows },
		"rank":       func(v *Variant) { v.Rank = 3 },
		"kept":       func(v *Variant) { v.Kept = 1 },
		"lanes":      func(v *Variant) { v.Lanes = 1 },
		"group":      func(v *Variant) { v.Group = 128 },
		"unroll":     func(v *Variant) { v.Unroll = 2 },
		"across":     func(v *Variant) { v.Across = true },
		"exact":      func(v *Variant) { v.Exact = true },
		"each":       func(v *Variant) { v.Each = 4 },
		"online":     func(v *Variant) { v.Online = 1 },
		"beside":     func(v *Variant) { v.Beside = 32 },
		"abreast":    func(v *Variant) { v.Abreast = 32 },
		"cluster":    func(v *Variant) { v.Cluster = 8 },
		"clustered":  func(v *Variant) { v.Clustered = true },
		"groups":     func(v *Variant) { v.Subgroups = true },
		"steps":      func(v *Variant) { v.Steps = 4 },
		"turn":       func(v *Variant) { v.Turn = 1 },
		"turned":     func(v *Variant) { v.Args[0].Turned = true },
		"still":      func(v *Variant) { v.Args[0].Still = true },
		"m":          func(v *Variant) { v.Mode, v.Tile.M = Tiles, 16 },
		"n":          func(v *Variant) { v.Mode, v.Tile.N = Tiles, 16 },
		"k":          func(v *Variant) { v.Mode, v.Tile.K = Tiles, 16 },
		"a block":    func(v *Variant) { v.Mode, v.Tile.RowsPer = Tiles, 8 },
		"columns":    func(v *Variant) { v.Mode, v.Tile.ColsPer = Tiles, 8 },
		"m dims":     func(v *Variant) { v.Mode, v.Tile.MDims = Tiles, 1 },
		"n dims":     func(v *Variant) { v.Mode, v.Tile.NDims = Tiles, 1 },
		"along a":    func(v *Variant) { v.Mode, v.Tile.AlongA = Tiles, true },
		"looped":     func(v *Variant) { v.Mode, v.Tile.Looped = Tiles, true },
		"matrix":     func(v *Variant) { v.Mode, v.Tile.Matrix = Tiles, Matrix{M: 8, N: 8, K: 8, Lanes: 8} },
		"shape":      func(v *Variant) { v.Mode, v.Tile.Matrix = Tiles, Matrix{M: 8, N: 8, K: 16, Lanes: 8} },
		"a subgroup": func(v *Variant) { v.Mode, v.Tile.Matrix = Tiles, Matrix{M: 8, N: 8, K: 8, Lanes: 16} },
		"wide":       func(v *Variant) { v.Mode, v.Tile.WideA = Tiles, true },
		"wide, both": func(v *Variant) { v.Mode, v.Tile.WideA, v.Tile.WideB = Tiles, true, true },
		"ahead":      func(v *Variant) { v.Mode, v.Tile.Ahead = Tiles, true },
		"in parts":   func(v *Variant) { v.Mode, v.Tile.Matrix = Tiles, Matrix{M: 8, N: 8, K: 8, Lanes: 8, Parts: 2} },
		"halves":     func(v *Variant) { v.Mode, v.Tile.Matrix = Tiles, Matrix{M: 8, N: 8, K: 8, Lanes: 8, Of: ir.BFloat16} },
		"along b":    func(v *Variant) { v.Mode, v.Tile.AlongB = Tiles, true },
		"tail":       func(v *Variant) { v.Tail = true },
		"ragged":     func(v *Variant) { v.Ragged = true },
		"class":      func(v *Variant) { v.Args[0].Class = codegen.Splat },
		"binding":    func(v *Variant) { v.Args[0].Binding = 1 },
		"vec":        func(v *Variant) { v.Args[1].Vec = false },
		"skip":       func(v *Variant) { v.Args[1].Skip = true },
		"guard":      func(v *Variant) { v.Args[1].Guard = 2 },
		"stage":      func(v *Variant) { v.Args[0].Stages = []int{3} },
		"stages":     func(v *Variant) { v.Args[0].Stages = []int{2, 2} },
		"parts":      func(v *Variant) { v.Args[0].Parts, v.Args[0].Part = 2, 64 },
		"a part":     func(v *Variant) { v.Args[0].Parts, v.Args[0].Part = 2, 128 },
		"write":      func(v *Variant) { v.Bindings[0].Write = true },
		"dtype":      func(v *Variant) { v.Bindings[0].DT = ir.Int32 },
		"vectors":    func(v *Variant) { v.Bindings[1].Vec = false },
		"a size":     func(v *Variant) { v.Bindings[0].Size = 1 },
		"another":    func(v *Variant) { v.Bindings[0].Size = 2 },
	} {
		v := base()
		change(v)
		key := v.Key()
		if other, dup := seen[key]; dup {
			t.Errorf("%s has the key of %s", name, other)
		}
		seen[key] = name
	}
}

func TestPack(t *testing.T) {
	k, err := codegen.Parse("in 0 : float32\nout 1 : float32\nscalar 0 : uint64\n%0 = load 0 : float32\nstore 1 %0")
	if err != nil {
		t.Fatal(err)
	}
	v := &Variant{Rank: 2, Kept: 2, Lanes: 4, Group: 64, Args: []Arg{{Binding: 0, Vec: true}, {Binding: 1, Class: codegen.Strided}},
		Bindings: []Binding{{Vec: true}, {Write: true}}}
	l := &runtime.Launch{Rank: 2, Kept: 2, Args: make([]runtime.Access, 2), Scalars: []uint64{0x1122334455667788}}
	l.Dims[0], l.Dims[1] = 40000, 400
	l.Args[0] = runtime.Access{Offset: 8, Stride: [runtime.MaxRank]int64{400, 1}}
	l.Args[1] = runtime.Access{Offset: 100, Stride: [runtime.MaxRank]int64{-3, 2}}
	words, grid, err := v.Pack(nil, k, l)
	if err != nil {
		t.Fatal(err)
	}
	const threads = 40000 * 100
	if grid.X != gridWidth || grid.Y != (threads/64+gridWidth-1)/gridWidth {
		t.Errorf("grid %v", grid)
	}
	s := v.slots(k)
	for _, c := range []struct {
		what string
		at   int
		want uint32
	}{
		{"threads", wordCount, threads},
		{"row", wordWidth, gridWidth * 64},
		{"inner", wordInner, 400},
		{"zero", wordZero, 0},
		{"dim 0", wordDims, 40000},
		{"dim 1 in vectors", wordDims + dimWords, 100},
		{"offset in vectors", s.args[0].offset, 2},
		{"stride in vectors", s.args[0].stride, 100},
		{"offset", s.args[1].offset, 100},
		{"negative stride", s.args[1].stride, 0xfffffffd},
		{"stride", s.args[1].stride + 1, 2},
		{"low word", s.scalars[0], 0x55667788},
		{"high word", s.scalars[0] + 1, 0x11223344},
	} {
		if words[c.at] != c.want {
			t.Errorf("%s: %d, want %d", c.what, words[c.at], c.want)
		}
	}
	if len(words)%4 != 0 || len(words) != s.total {
		t.Errorf("%d words, want %d", len(words), s.total)
	}
	l.Dims[0] = 1 << 40
	if _, _, err := v.Pack(nil, k, l); err == nil {
		t.Error("a dispatch of 2^47 invocations was packed")
	}
}

// TestDivisor checks that multiplying and shifting divides, at and around every multiple that could
// go wrong.
func TestDivisor(t *testing.T) {
	quotient := func(x, m, s uint32) uint32 { return uint32(uint64(x<<1)*uint64(m)>>32) >> s }
	check := func(x, d uint32) {
		m, s := divisor(d)
		if got := quotient(x, m, s); got != x/d {
			t.Fatalf("%d/%d is %d, want %d", x, d, got, x/d)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 200000 {
		d := uint32(1 + i)
		if i > 1000 {
			d = 1 + rng.Uint32N(maxCount)>>rng.IntN(31)
		}
		q := maxCount / d
		for _, x := range []uint32{0, 1, d - 1, d, q * d, q*d - 1, maxCount, rng.Uint32N(maxCount)} {
			if x <= maxCount {
				check(x, d)
			}
		}
	}
}

// TestIndexBase checks that positions above 32 bits are a base and a distance.
func TestIndexBase(t *testing.T) {
	k, err := codegen.Parse("index 0\nout 1 : int32\n%0 = indexhi 0 : uint32\n%1 = convert %0 : int32\nstore 1 %1")
	if err != nil {
		t.Fatal(err)
	}
	v := &Variant{Rank: 1, Kept: 1, Lanes: 1, Group: 64, Args: []Arg{{Binding: -1}, {}}, Bindings: []Binding{{Write: true}}}
	l := &runtime.Launch{Rank: 1, Kept: 1, Args: make([]runtime.Access, 2)}
	l.Dims[0] = 10
	l.Args[0] = runtime.Access{Offset: 5<<32 + 20, Stride: [runtime.MaxRank]int64{-2}}
	words, _, err := v.Pack(nil, k, l)
	if err != nil {
		t.Fatal(err)
	}
	s := v.slots(k).args[0]
	if words[s.base] != 2 || words[s.base+1] != 5 || words[s.offset] != 18 {
		t.Errorf("base %d %d, distance from %d; want 2 5 18", words[s.base], words[s.base+1], words[s.offset])
	}
}

// TestWorkgroupMemoryOnce checks that memory used by several steps or passes is declared once.
func TestWorkgroupMemoryOnce(t *testing.T) {
	k, err := codegen.Parse("in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\n%1 = cumsum %0 : float32\n%2 = max %1 : float32\n%3 = sub %1 %2 : float32\nstore 1 %3")
	if err != nil {
		t.Fatal(err)
	}
	for _, unroll := range []int{0, 3} {
		v := Dense(k, 1)
		v.Unroll = unroll
		text, err := Print(other, k, &v)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "shared ") {
				if seen[line] {
					t.Errorf("unroll %d: twice: %s", unroll, line)
				}
				seen[line] = true
			}
		}
		if len(seen) < 2 {
			t.Errorf("unroll %d: declared %v\n%s", unroll, seen, text)
		}
	}
}

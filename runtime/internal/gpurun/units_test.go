package gpurun

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen/glsl"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/codegen/spirv"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

func productText(dt string) string {
	return strings.ReplaceAll("in 0 : T\nin 1 : T\nout 2 : T row\n%0 = load 0 : T\n%1 = load 1 : T\n%2 = dot %0 %1 : T\nstore 2 %2", "T", dt)
}

var someUnits = []shader.Matrix{
	{M: 16, N: 8, K: 16, Lanes: 32, Of: ir.Float16}, {M: 16, N: 16, K: 16, Lanes: 32, Of: ir.Float16}, {M: 16, N: 8, K: 8, Lanes: 32, Of: ir.BFloat16},
}

// withUnits is a fake with matrix units, which are right or compute nothing.
func withUnits(t *testing.T, kind string, lang *shader.Dialect, right bool, c runtime.Config) (*Runner, *fake) {
	f := newFake()
	f.info.Kind, f.info.Matrices, f.info.Limits.WorkgroupStorage = kind, someUnits, 48<<10
	if right {
		f.afterwards = multiply
	}
	d := New("fake", f, lang, c)
	t.Cleanup(func() { _ = d.Close() })
	return d, f
}

// multiply does the work of the shaders of compareProduct. It finds the sizes in the run-time words'
// place, those of the buffers, and the layouts in the text.
func multiply(list []Dispatch) {
	for _, x := range list {
		p, ok := x.Pipe.(*fakePipeline)
		if !ok || !strings.Contains(p.source, "matadd") || len(x.Bind) != 4 {
			continue
		}
		of := ir.Float16
		switch {
		case strings.Contains(p.source, "part1("):
			of = ir.Float32
		case strings.Contains(p.source, "bf16"):
			of = ir.BFloat16
		}
		var data [3][]byte
		for i := range data {
			data[i] = x.Bind[i].Buf.(*fakeBuffer).memory()
		}
		for _, t := range append(append([]shader.Tile{{M: 128, N: 64, K: 32}, {M: 64, N: 64, K: 16}}, unitTiles...), partTiles...) { // those of software are among them
			m, n, k := t.M+5, t.N+3, 2*t.K+1
			if x.Bind[0].Size != int64((m*k*4+15)&^15) || x.Bind[1].Size != int64((n*k*4+15)&^15) {
				continue
			}
			at := func(side, i int) float64 {
				return ir.BitsFloat(of, uint64(binary.LittleEndian.Uint32(data[side][4*i:])))
			}
			a, b := [2]int{k, 1}, [2]int{k, 1} // strides
			if strings.Contains(p.source, "matloadt(mata") {
				a = [2]int{1, m}
			}
			if strings.Contains(p.source, "matload(matb") {
				b = [2]int{1, n}
			}
			for i := range m {
				for j := range n {
					sum := 0.0
					for s := range k {
						sum += at(0, i*a[0]+s*a[1]) * at(1, j*b[0]+s*b[1])
					}
					binary.LittleEndian.PutUint32(data[2][4*(i*n+j):], math.Float32bits(float32(sum)))
				}
			}
			break
		}
	}
}

// product runs a product of m by k and k by n elements, contiguous along k, and returns its shader.
func product(t *testing.T, d *Runner, kernel string, m, n, k int64) string {
	t.Helper()
	l := launch(t, d, kernel, 2, m, n, k)
	l.Args[0].Stride = [runtime.MaxRank]int64{k, 0, 1}
	l.Args[1].Stride = [runtime.MaxRank]int64{0, k, 1}
	if err := d.Run([]runtime.Launch{*l}); err != nil {
		t.Fatal(err)
	}
	text := "" // of none if the launch was run as another kernel
	for _, v := range d.Source(l.Prog) {
		text += v.Source
	}
	return text
}

// TestUnitsChosen: matrix units are used for products of their dtypes, by the shape with the most
// products, and by the largest tile that keeps the device busy and fits its limits.
func TestUnitsChosen(t *testing.T) {
	const on, off = runtime.MatricesOn, runtime.MatricesOff
	for _, c := range []struct {
		name   string
		kind   string
		lang   *shader.Dialect
		mode   runtime.MatrixMode
		kernel string
		m, n   int64
		shape  string // in the text
		group  string // invocations
	}{
		{"hardware", "DiscreteGPU", spirv.Dialect, on, productText("float16"), 200, 200, "16 16 16 f16", "groups 128 {"},
		{"bfloat16", "DiscreteGPU", spirv.Dialect, on, productText("bfloat16"), 200, 200, "16 8 8 bf16", "groups 128 {"},
		{"large", "DiscreteGPU", spirv.Dialect, on, productText("float16"), 2048, 2048, "16 16 16 f16", "groups 256 {"},
		{"software", "CPU", spirv.Dialect, on, productText("float16"), 2048, 200, "16 16 16 f16", "groups 128 {"},
		{"turned off", "DiscreteGPU", spirv.Dialect, off, productText("float16"), 200, 200, "", ""},
		{"a language without", "DiscreteGPU", glsl.Dialect, on, productText("float16"), 200, 200, "", ""},
		{"float32", "DiscreteGPU", spirv.Dialect, on, productText("float32"), 200, 200, "", ""},
		{"integers", "DiscreteGPU", spirv.Dialect, on, productText("uint16"), 200, 200, "", ""},
		{"small", "DiscreteGPU", spirv.Dialect, on, productText("float16"), 4, 200, "", ""},
	} {
		d, _ := withUnits(t, c.kind, c.lang, true, runtime.Config{Matrices: c.mode, OnError: func(err error) { t.Errorf("%s: %v", c.name, err) }})
		text := product(t, d, c.kernel, c.m, c.n, 40)
		if (c.shape != "") != strings.Contains(text, "matadd") || !strings.Contains(text, "matrices "+c.shape) && c.shape != "" || !strings.Contains(text, c.group) {
			t.Errorf("%s: not by %q in %q:\n%s", c.name, c.shape, c.group, text)
		}
		said := strings.Contains(d.Caps().Description, "matrix units of 16x16x16 float16, matrix units of 16x8x8 bfloat16")
		if want := c.lang == spirv.Dialect && c.mode == on; said != want {
			t.Errorf("%s: described as %q", c.name, d.Caps().Description)
		}
	}
	d, f := withUnits(t, "DiscreteGPU", spirv.Dialect, true, runtime.Config{})
	other, _ := withUnits(t, "DiscreteGPU", spirv.Dialect, true, runtime.Config{Matrices: off})
	if d.Caps().Scope() == other.Caps().Scope() {
		t.Error("devices with matrix units and without have one scope")
	}
	f.info.Limits.WorkgroupStorage = 8 << 10
	tight := New("fake", f, spirv.Dialect, runtime.Config{})
	if text := product(t, tight, productText("float16"), 200, 200, 40); strings.Contains(text, "matadd") {
		t.Error("a tile does not fit the memory of a workgroup")
	}
}

// TestUnitsRefused: units that compute something else than the host, and units whose shaders the
// driver rejects, are used no more. That is counted and told once, and products go on without.
func TestUnitsRefused(t *testing.T) {
	for name, want := range map[string]string{"wrong": "the host computes", "rejected": "no matrices here"} {
		var told []error
		d, f := withUnits(t, "DiscreteGPU", spirv.Dialect, name == "rejected", runtime.Config{OnError: func(err error) { told = append(told, err) }})
		if name == "rejected" {
			f.compiling = func(source string) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.refuse = nil
				if strings.Contains(source, "matadd") {
					f.refuse = &SourceError{"no matrices here"}
				}
			}
		}
		for _, of := range []string{"float16", "bfloat16", "float16"} {
			if text := product(t, d, productText(of), 200, 200, 40); strings.Contains(text, "matadd") {
				t.Errorf("%s: matrix units are used for %s", name, of)
			}
		}
		if s := d.Stats(); s.Fallbacks != 1 {
			t.Errorf("%s: %d fallbacks", name, s.Fallbacks)
		}
		if len(told) != 1 || !strings.Contains(told[0].Error(), "products no longer use matrix units") || !strings.Contains(told[0].Error(), want) {
			t.Errorf("%s: told %v", name, told)
		}
	}
}

// TestUnitsKnown: a tile is compared once, and not again by a process that finds the outcome in the
// cache; a driver with another fingerprint compares anew.
func TestUnitsKnown(t *testing.T) {
	cache := &memoryCache{list: map[string]string{}}
	compared := func(driver string) (n int) {
		d, f := withUnits(t, "DiscreteGPU", spirv.Dialect, true, runtime.Config{})
		f.info.Driver = driver
		d = New("fake", f, spirv.Dialect, runtime.Config{Cache: cache})
		for range 2 {
			product(t, d, productText("float16"), 200, 200, 40)
		}
		d.notes.wait()
		return len(f.made) - 1 // the product's own shader
	}
	for i, want := range []int{1, 0} {
		if n := compared("1.0"); n != want {
			t.Errorf("process %d compared %d tiles, want %d", i, n, want)
		}
	}
	if n := compared("2.0"); n != 1 {
		t.Errorf("another driver: %d tiles", n)
	}
}

// TestPrecision: with the option, products of float32 go by units of bfloat16 in parts, by tiles that
// fit the memory of a workgroup. Without such units they stay as they are, which is counted and told.
// Emulated units of float16 take their place.
func TestPrecision(t *testing.T) {
	const full, six, three = runtime.PrecisionFull, runtime.PrecisionBF16x6, runtime.PrecisionBF16x3
	both, halves := someUnits, someUnits[:2]
	for _, c := range []struct {
		name      string
		lang      *shader.Dialect
		matrices  []shader.Matrix
		emulated  bool
		mode      runtime.PrecisionMode
		kernel    string
		m, n      int64
		text      []string // in the shader; the first says whether parts are used
		fallbacks int64
	}{
		{"three parts", spirv.Dialect, both, false, six, productText("float32"), 200, 200, []string{"part2(", "matrices 16 8 8 bf16", "groups 128 {"}, 0},
		{"two parts", spirv.Dialect, both, false, three, productText("float32"), 200, 200, []string{"part1(", "matrices 16 8 8 bf16", "groups 128 {"}, 0},
		{"large", spirv.Dialect, both, false, three, productText("float32"), 2048, 2048, []string{"part1(", "matrices 16 8 8 bf16", "groups 256 {"}, 0},
		{"emulated", spirv.Dialect, halves, true, three, productText("float32"), 200, 200, []string{"part1(", "matrices 16 16 16 f16"}, 0},
		{"full", spirv.Dialect, both, false, full, productText("float32"), 200, 200, nil, 0},
		{"other dtypes", spirv.Dialect, both, false, six, productText("bfloat16"), 200, 200, nil, 0},
		{"integers", spirv.Dialect, both, false, six, productText("int32"), 200, 200, nil, 0},
		{"no bfloat16", spirv.Dialect, halves, false, six, productText("float32"), 200, 200, nil, 1},
		{"no units", spirv.Dialect, nil, false, three, productText("float32"), 200, 200, nil, 1},
		{"a language without", glsl.Dialect, both, false, three, productText("float32"), 200, 200, nil, 1},
	} {
		var told []string
		f := newFake()
		f.info.Kind, f.info.Matrices, f.info.Emulated, f.info.Limits.WorkgroupStorage = "DiscreteGPU", c.matrices, c.emulated, 48<<10
		f.afterwards = multiply
		d := New("fake", f, c.lang, runtime.Config{Precision: c.mode, OnError: func(err error) { told = append(told, err.Error()) }})
		text := product(t, d, c.kernel, c.m, c.n, 40)
		for _, want := range c.text {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, text)
			}
		}
		if c.text == nil && strings.Contains(text, "part1(") {
			t.Errorf("%s: in parts:\n%s", c.name, text)
		}
		if n := d.Stats().Fallbacks; n != c.fallbacks || int64(len(told)) != n || n > 0 && !strings.Contains(told[0], "no matrix units multiply bfloat16") {
			t.Errorf("%s: %d fallbacks, told %q", c.name, n, told)
		}
		_ = d.Close()
	}
	scopes := map[string]bool{}
	for _, mode := range []runtime.PrecisionMode{full, six, three} {
		d, _ := withUnits(t, "DiscreteGPU", spirv.Dialect, true, runtime.Config{Precision: mode})
		scopes[d.Caps().Scope()] = true
	}
	if len(scopes) != 3 {
		t.Errorf("%d scopes of three modes", len(scopes))
	}
}

// TestUnitsWide: a dense side is loaded by vectors, along k or across, where its lines are aligned
// groups of four that nothing else reads.
func TestUnitsWide(t *testing.T) {
	plain, squared := productText("float16"), strings.Replace(productText("float16"), "dot %0 %1", "dot %0 %0", 1)
	fused := "in 0 : float16\nin 1 : float16\nout 2 : float16 row\n%0 = load 0 : float16\n%1 = load 1 : float16\n%2 = neg %1 : float16\n%3 = dot %0 %2 : float16\nstore 2 %3"
	const m, n = 64, 40
	for _, c := range []struct {
		name, kernel string
		k            int64
		a, b         [3]int64 // strides along m, n and k
		offset       int64    // of the first operand
		same         bool     // both operands have one buffer
		wide         string   // sides
	}{
		{"along k", plain, 40, [3]int64{40, 0, 1}, [3]int64{0, 40, 1}, 0, false, "ab"},
		{"across", plain, 33, [3]int64{1, 0, m}, [3]int64{0, 1, n}, 0, false, "ab"},
		{"one across", plain, 40, [3]int64{40, 0, 1}, [3]int64{0, 1, n}, 0, false, "ab"},
		{"ragged k", plain, 42, [3]int64{44, 0, 1}, [3]int64{0, 1, n}, 0, false, "b"},
		{"ragged lines", plain, 40, [3]int64{42, 0, 1}, [3]int64{0, 40, 1}, 0, false, "b"},
		{"an offset", plain, 40, [3]int64{40, 0, 1}, [3]int64{0, 40, 1}, 2, false, "b"},
		{"an even offset", plain, 40, [3]int64{40, 0, 1}, [3]int64{0, 40, 1}, 4, false, "ab"},
		{"steps", plain, 40, [3]int64{80, 0, 2}, [3]int64{0, 40, 1}, 0, false, "b"},
		{"one buffer", plain, 40, [3]int64{40, 0, 1}, [3]int64{0, 40, 1}, 0, true, "ab"},
		{"one buffer, one side ragged", plain, 40, [3]int64{42, 0, 1}, [3]int64{0, 40, 1}, 0, true, ""},
		{"a computed side", fused, 40, [3]int64{40, 0, 1}, [3]int64{0, 40, 1}, 0, false, "a"},
		{"a computed side in one buffer", fused, 40, [3]int64{40, 0, 1}, [3]int64{0, 40, 1}, 0, true, ""},
		{"one operand twice", squared, 40, [3]int64{1, 1, 64}, [3]int64{}, 0, false, ""},
	} {
		d, _ := withUnits(t, "DiscreteGPU", spirv.Dialect, true, runtime.Config{OnError: func(err error) { t.Errorf("%s: %v", c.name, err) }})
		l := launch(t, d, c.kernel, 2, m, n, c.k)
		for i, st := range [][3]int64{c.a, c.b} {
			l.Args[i].Stride = [runtime.MaxRank]int64{st[0], st[1], st[2]}
			buf, err := d.Alloc(1 << 16)
			if err != nil {
				t.Fatal(err)
			}
			l.Args[i].Buf = buf
		}
		l.Args[0].Offset = c.offset
		if c.same {
			l.Args[1].Buf = l.Args[0].Buf
		}
		if err := d.Run([]runtime.Launch{*l}); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		text := ""
		for _, v := range d.Source(l.Prog) {
			text += v.Source
		}
		for _, side := range []string{"a", "b"} {
			if got := strings.Contains(text, "func quad_"+side); got != strings.Contains(c.wide, side) || got == strings.Contains(text, "func element_"+side) && c.name != "one operand twice" {
				t.Errorf("%s: side %s by vectors: %v in\n%s", c.name, side, got, text)
			}
		}
	}
}

// TestUnitsAhead: the tuner tries tiles that load ahead where a workgroup has the memory, and keeps
// others where it has not.
func TestUnitsAhead(t *testing.T) {
	for _, c := range []struct {
		precision runtime.PrecisionMode
		kernel    string
		ahead     []string // choices of a tile that fits
	}{
		{runtime.PrecisionFull, productText("float16"), []string{"units=32x32/16x16 ahead", "units=64x64/32x32 ahead", "units=64x64x16/32x32 ahead", "units=128x64x16/32x32 ahead", "units=128x128x16/64x32 ahead"}},
		{runtime.PrecisionBF16x3, productText("float32"), []string{"units=32x32/16x16 ahead", "units=64x64x16/32x32 ahead"}},
	} {
		d, _ := withUnits(t, "DiscreteGPU", spirv.Dialect, true, runtime.Config{Precision: c.precision, OnError: func(err error) { t.Error(err) }})
		l := launch(t, d, c.kernel, 2, 256, 256, 64)
		l.Args[0].Stride, l.Args[1].Stride = [runtime.MaxRank]int64{64, 0, 1}, [runtime.MaxRank]int64{0, 64, 1}
		var got []string
		seen := 0
		for _, x := range d.Choices(l).List {
			l.Choice = x.Code
			if err := d.Run([]runtime.Launch{*l}); err != nil {
				t.Fatalf("%s: %v", x.Name, err)
			}
			ahead := 0
			for _, v := range d.Source(l.Prog) {
				ahead += strings.Count(v.Source, "let u32 other ")
			}
			if ahead > seen {
				got, seen = append(got, x.Name), ahead
			}
		}
		if !slices.Equal(got, c.ahead) {
			t.Errorf("%v: ahead by %q, want %q", c.precision, got, c.ahead)
		}
	}
}

package gputest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// precisions are the modes in which float32 is multiplied in parts. lacks bounds the sum of those
// products that are left out, as a part of the sum of the products' magnitudes.
var precisions = []struct {
	name  string
	mode  runtime.PrecisionMode
	parts int
	lacks float64
}{
	{"bf16x6", runtime.PrecisionBF16x6, 3, 0x1p-23},
	{"bf16x3", runtime.PrecisionBF16x3, 2, 0x3p-16},
}

// inParts reports whether a device multiplies float32 in parts.
func inParts(description string) bool { return strings.Contains(description, "float32 multiplied as") }

// partsOf is the oracle of shaders' parts: see codegen/shader/parts.go.
func partsOf(x float32, n int) []float32 {
	list := make([]float32, n)
	if v := float64(x); math.IsInf(v, 0) || v != v {
		list[0] = float32(math.Copysign(1, v))
		list[n-1] = x
		return list
	}
	for i := range list {
		near := float32(ir.BitsFloat(ir.BFloat16, ir.FloatBits(ir.BFloat16, float64(x))))
		if math.IsInf(float64(near), 0) {
			near = math.Float32frombits(math.Float32bits(x) &^ 0xffff)
		}
		list[i] = near
		x -= near
	}
	return list
}

// floats are an operand's numbers.
func (x *trial) floats(operand int) []float32 {
	list := make([]float32, len(x.args[operand].Data)/4)
	for i := range list {
		list[i] = math.Float32frombits(binary.LittleEndian.Uint32(x.args[operand].Data[4*i:]))
	}
	return list
}

func (x *trial) setFloat(operand, at int, v float64) {
	binary.LittleEndian.PutUint32(x.args[operand].Data[4*at:], math.Float32bits(float32(v)))
}

// exactInHalves fills an operand with numbers whose bfloat16 parts are float16 numbers: emulated units
// may have no others.
func (x *trial) exactInHalves(rng *rand.Rand, operand int) {
	for i := range x.args[operand].Data[:len(x.args[operand].Data)/4] {
		x.setFloat(operand, i, math.Copysign(0.5+7.5*rng.Float64(), rng.Float64()-0.5))
	}
}

// summed calls f with each result's index, its exact sum, those of the products of two and of three
// parts, and the sum of magnitudes. The trial's operands are those of matrices.
func (x *trial) summed(f func(at int, exact float64, parts map[int]float64, size float64)) {
	var split [2][][]float32
	for i := range split {
		for _, v := range x.floats(i) {
			split[i] = append(split[i], append(partsOf(v, 2), partsOf(v, 3)...))
		}
	}
	b, m, n, k := x.dims[0], x.dims[1], x.dims[2], x.dims[3]
	p, q := &x.args[0].Stride, &x.args[1].Stride
	left, right := x.floats(0), x.floats(1)
	at := 0
	for ib := range b {
		for im := range m {
			for in := range n {
				exact, size, sums := 0.0, 0.0, map[int]float64{}
				for s := range k {
					i, j := ib*p[0]+im*p[1]+s*p[3], ib*q[0]+in*q[2]+s*q[3]
					v := float64(left[i]) * float64(right[j])
					exact, size = exact+v, size+math.Abs(v)
					for parts, first := range map[int]int{2: 0, 3: 2} {
						for c := range parts {
							for d := range parts - c {
								sums[parts] += float64(split[0][i][first+c]) * float64(split[1][j][first+d])
							}
						}
					}
				}
				f(at, exact, sums, size)
				at++
			}
		}
	}
}

// testPrecision: float32 products in parts are the sums that the mode says, near enough to tell the
// modes apart, and within the documented error of the exact sums: in all layouts, in random sizes, in
// batches, cut into parts, and as on GPUs and on software adapters. A device without units counts a
// fallback and multiplies in float32.
func testPrecision(t *testing.T) {
	cut := func(i *gpurun.Info) { i.Limits.Binding, i.Points = 16*max(i.Limits.Align, 256), 1000 }
	rng := rand.New(rand.NewPCG(7, 11))
	for kind, say := range map[string]func(*gpurun.Info){"software": software, "hardware": hardware, "cut": cut} {
		for i, c := range precisions {
			if i > 0 && kind != "software" {
				continue // compilers of software devices take seconds
			}
			var told []error
			d := open(t, runtime.Config{Precision: c.mode, OnError: func(err error) { told = append(told, err) }}, say)
			used := inParts(d.Caps().Description)
			if want := map[bool]int64{false: 1}[used]; d.Stats().Fallbacks != want || len(told) != int(want) {
				t.Errorf("%s, %s: %d fallbacks, told %v", kind, c.name, d.Stats().Fallbacks, told)
			}
			for layout := range 4 {
				if layout%2 != i || layout > 1 && (!used || kind != "software") {
					continue // other suites have the rest
				}
				dims := []int64{1 + rng.Int64N(2), 33 + rng.Int64N(60), 33 + rng.Int64N(60), 1 + rng.Int64N(70)}
				x := newTrial(parse(t, dotKernel("float32")), 3, dims...)
				x.matrices(layout&1 == 0, layout&2 == 0, layout%2 == 1)
				x.exactInHalves(rng, 0)
				x.exactInHalves(rng, 1)
				l := x.launch(t, d)
				must(t, d.Run([]runtime.Launch{*l}))
				if got := strings.Contains(sources(d, l), "part1("); got != used && kind != "cut" {
					t.Fatalf("%s, %s of %v: in parts: %v, want %v", kind, c.name, dims, got, used)
				}
				data := make([]byte, len(x.args[2].Data))
				must(t, d.Read(data, ir.Float32, l.Args[2].Buf, 0))
				if used {
					x.nearest(t, fmt.Sprintf("%s, %s of %v", kind, c.name, dims), data, c.parts, c.lacks)
				}
			}
		}
	}
}

// nearest checks results against the sums of parts.
func (x *trial) nearest(t *testing.T, name string, data []byte, parts int, lacks float64) {
	t.Helper()
	k := float64(x.dims[3])
	rounded := (32 + k/4) * 0x1p-24 // of float32 sums, which units may round toward zero
	var own, exactly, two float64   // squares of differences: to the mode's sums, to the exact ones, and of those to sums of two parts
	x.summed(func(at int, exact float64, sums map[int]float64, size float64) {
		got := float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*at:])))
		if e := math.Abs(got - sums[parts]); !(e <= rounded*size) {
			t.Fatalf("%s: result %d is %v, that of parts %v: %.3g of the magnitudes", name, at, got, sums[parts], e/size)
		}
		if e := math.Abs(got - exact); !(e <= (rounded+lacks)*size) {
			t.Fatalf("%s: result %d is %v, want %v: %.3g of the magnitudes", name, at, got, exact, e/size)
		}
		own, exactly, two = own+square((got-sums[parts])/size), exactly+square((got-exact)/size), two+square((sums[2]-exact)/size)
	})
	if parts == 2 && own*16 > exactly || parts == 3 && exactly*64 > two {
		t.Errorf("%s: the results are not those of %d parts: squares of errors %.3g to them, %.3g to exact sums, %.3g of two parts", name, parts, own, exactly, two)
	}
}

func square(x float64) float64 { return x * x }

// testPrecisionSpecial: NaN and infinities are those of float32 products, also beside numbers whose
// smaller parts are zero or have the other sign, and beside infinities.
func testPrecisionSpecial(t *testing.T) {
	inf := math.Inf(1)
	factors := []float64{0, 1, -1, 1.001, -1.001, 1.996, 255.9, inf, -inf, math.NaN(), 2, 0.75}
	for _, c := range precisions {
		d := open(t, runtime.Config{Precision: c.mode}, nil)
		n := int64(len(factors))
		x := newTrial(parse(t, dotKernel("float32")), 3, 1, n*n, n, 3)
		x.matrices(true, true, false)
		// Row r of the left side has two of the factors, and column c of the right side one of them.
		for r := range n * n {
			x.setFloat(0, int(3*r), factors[r/n])
			x.setFloat(0, int(3*r+1), factors[r%n])
		}
		for i := range n {
			x.setFloat(1, int(3*i), factors[i])
			x.setFloat(1, int(3*i+1), 1.001)
			x.setFloat(1, int(3*i+2), 3)
		}
		l := x.check(t, d, ir.Tolerance{Rel: 0x1p-13, Abs: 0x1p-5})
		if got := strings.Contains(sources(d, l), "part1("); got != inParts(d.Caps().Description) {
			t.Errorf("%s: in parts: %v", c.name, got)
		}
	}
}

// testPrecisionParts runs the functions that find the parts, on numbers that emulated units do not
// have: random bits, the largest numbers, denormals.
func testPrecisionParts(t *testing.T) {
	if under.Dialect.Matrices == "" {
		t.Skip("the language has no matrices")
	}
	d := openGPU(t)
	for _, c := range precisions {
		numbers := []uint32{0x7f7fffff, 0xff7fffff, 0x7f7f8000, 0x7f7f7fff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff, 0, 1 << 31, 0x3f808000, 0x3f818000, 0x3f80ffff, 1, 0x80ffffff}
		rng := rand.New(rand.NewPCG(3, 5))
		for len(numbers) < 4096 {
			numbers = append(numbers, rng.Uint32())
		}
		text := fmt.Sprintf("read 0 b0 vec4f32;\nwrite 1 b1 vec4f32;\nwords 2 1;\n%s\nmain invocations 64 {\n\tlet vec4f32 x = b0[id.x];\n", partsText(t, c.parts))
		for i := range c.parts {
			text += fmt.Sprintf("\tb1[id.x * %du + %du] = part%d(x);\n", c.parts, i, i)
		}
		pipe, err := d.NewPipeline(text+"}\n", []gpurun.Binding{gpurun.ReadOnly, gpurun.ReadWrite, gpurun.Params})
		must(t, err)
		in, err := d.NewBuffer(int64(len(numbers)*4), gpurun.Storage)
		must(t, err)
		out, err := d.NewBuffer(int64(len(numbers)*4*c.parts), gpurun.Storage)
		must(t, err)
		params, err := d.NewBuffer(16, gpurun.Uniform)
		must(t, err)
		must(t, d.Write(in, 0, in.Size(), fillWords(func(i int64) uint32 { return numbers[i] })))
		must(t, d.Submit([]gpurun.Dispatch{{
			Pipe: pipe, Bind: []gpurun.Range{{Buf: in, Size: in.Size()}, {Buf: out, Size: out.Size()}, {Buf: params, Size: 16}},
			Groups: [3]uint32{uint32(len(numbers) / 4 / 64), 1, 1},
		}}, params, words(0, 0, 0, 0)))
		got := make([]byte, out.Size())
		must(t, d.Read(out, 0, out.Size(), func(src []byte, at int64) { copy(got[at:], src) }))
		for i, u := range numbers {
			x := math.Float32frombits(u)
			sum := 0.0
			for part, want := range partsOf(x, c.parts) {
				y := math.Float32frombits(binary.LittleEndian.Uint32(got[4*((i/4*c.parts+part)*4+i%4):]))
				if same := y == want || y != y && want != want; !same && !(math.Abs(float64(want-y)) < 0x1p-126) { // a denormal, flushed
					t.Fatalf("%s: part %d of %v (%#x) is %v, want %v", c.name, part, x, u, y, want)
				}
				sum += float64(y)
			}
			if !(math.IsInf(float64(x), 0) || x != x) && c.parts == 3 && math.Abs(sum-float64(x)) >= 0x1p-125 {
				t.Fatalf("%s: the parts of %v (%#x) add up to %v", c.name, x, u, sum)
			}
		}
		for _, b := range []gpurun.Buffer{in, out, params} {
			b.Release()
		}
	}
}

// partsText is the functions in the text of a product.
func partsText(t *testing.T, parts int) string {
	t.Helper()
	k, err := shader.Prepare(parse(t, dotKernel("float32")))
	must(t, err)
	v := shader.Dense(k, 1)
	v.Tile = shader.Tile{M: 16, N: 16, K: 8, RowsPer: 8, ColsPer: 8, MDims: 1, NDims: 1, Matrix: shader.Matrix{M: 8, N: 8, K: 8, Lanes: 8, Of: ir.BFloat16, Parts: parts}}
	v.Group = v.Tile.Group()
	text, err := shader.Print(under.Dialect, k, &v)
	must(t, err)
	_, text, _ = strings.Cut(text, "func rounded(")
	text, _, ok := strings.Cut(text, "\nshared tc")
	if !ok {
		t.Fatalf("no functions in\n%s", text)
	}
	return "func rounded(" + text
}

// testEnginePrecision: an attention's chain, a batched product with a bias, and a convolution are
// within the mode's error, and fused as without the option. Each mode has some of them, because
// compilers of software devices take seconds.
func testEnginePrecision(t *testing.T) {
	h := newHeads(rand.New(rand.NewPCG(1, 1)), heads{batch: 1, heads: 2, groups: 1, n: 320, d: 16})
	want := h.want()
	for i, c := range precisions {
		d := openWith(t, "explore=wait", "tune=off", "precision="+c.name)
		used := inParts(d.Description())
		if i > 0 {
			got, err := h.run(d, nil)
			must(t, err)
			if n := d.Stats().Kernels; n != 3 {
				t.Errorf("%s: %d kernels of an attention, want 3", c.name, n)
			}
			for i, w := range want {
				if e := math.Abs(float64(got[i]) - w); !(e < 1e-5+2*c.lacks) {
					t.Fatalf("%s: element %d of an attention is %v, want %v", c.name, i, got[i], w)
				}
			}
		}
		cpu := openCPU(t, "explore=wait")
		for name, run := range map[string]func(d *millrace.Device) *millrace.Tensor{
			"a batched product": func(d *millrace.Device) *millrace.Tensor {
				a, b := millrace.FromSliceOn(d, h.q[:2*40*50], 2, 40, 50), millrace.FromSliceOn(d, h.k[:2*50*30], 2, 50, 30)
				return a.Abs().MatMul(b).Add(millrace.FromSliceOn(d, h.v[:30], 30)).Tanh()
			},
			"a convolution": func(d *millrace.Device) *millrace.Tensor {
				x, k := millrace.FromSliceOn(d, h.q[:2*8*12*12], 2, 8, 12, 12), millrace.FromSliceOn(d, h.k[:16*8*3*3], 16, 8, 3, 3)
				return millrace.Conv2d(x, k, millrace.ConvOptions{}).Relu()
			},
		} {
			if i > 0 {
				break
			}
			before := d.Stats().Kernels
			got, want := values(t, run(d)), values(t, run(cpu))
			if n := d.Stats().Kernels - before; n != 1 {
				t.Errorf("%s: %d kernels of %s, want 1", c.name, n, name)
			}
			for i, w := range want {
				if e := math.Abs(float64(got[i] - w)); !(e < 72*(c.lacks+1e-6)) { // sums of 50 or 72 products
					t.Fatalf("%s: element %d of %s is %v, want %v", c.name, i, name, got[i], w)
				}
			}
		}
		if n, want := d.Stats(), map[bool]int64{false: 1}[used]; n.Runtime.Fallbacks != want || n.Fallbacks != 0 {
			t.Errorf("%s: fallbacks %d, of plans %d", c.name, n.Runtime.Fallbacks, n.Fallbacks)
		}
	}
}

package gputest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// halfProducts are products of 16-bit floats T: whole, with ops before and after, and of halves that
// were converted before.
var halfProducts = map[string]string{
	"plain": dotKernel("T"),
	"to float32": `
in 0 : T
in 1 : T
out 2 : float32 row
%0 = load 0 : T
%1 = load 1 : T
%2 = cast %0 : float32
%3 = cast %1 : float32
%4 = dot %2 %3 : float32
store 2 %4
`,
	"fused": `
in 0 : T
in 1 : T
in 2 : T row
in 3 : float32 row
out 4 : T row
out 5 : bool row
scalar 0 : float32
%0 = load 0 : T
%1 = load 1 : T
%2 = relu %0 : T
%3 = mul %1 %1 : T
%4 = cast %2 : float32
%5 = cast %3 : float32
%6 = dot %4 %5 : float32
%7 = load 2 : T
%8 = cast %7 : float32
%9 = add %6 %8 : float32
%10 = load 3 : float32
%11 = maximum %9 %10 : float32
%12 = cast %11 : T
%13 = scalar 0 : float32
%14 = gt %11 %13 : bool
store 4 %12
store 5 %14
`,
	"rounded sides": `
in 0 : float32
in 1 : float32
out 2 : float32 row
%0 = load 0 : float32
%1 = load 1 : float32
%2 = cast %0 : T
%3 = cast %1 : T
%4 = cast %2 : float32
%5 = cast %3 : float32
%6 = dot %4 %5 : float32
store 2 %6
`,
}

// halves fills an operand with numbers around 1, of its dtype.
func (x *trial) halves(rng *rand.Rand, operand int) {
	data, dt := x.args[operand].Data, x.k.Operands[operand].DT
	size := dt.Size()
	for i := 0; i+size <= len(data); i += size {
		bits := ir.FloatBits(dt, float64(float32(rng.NormFloat64())))
		binary.LittleEndian.PutUint16(data[i:], uint16(bits))
		if size == 4 {
			binary.LittleEndian.PutUint32(data[i:], uint32(bits))
		}
	}
}

// unitsOf are the dtypes that a device's matrix units multiply.
func unitsOf(d *device) (list []string) {
	for _, of := range []string{"float16", "bfloat16"} {
		for part := range strings.SplitSeq(d.Caps().Description, ", ") {
			if strings.HasPrefix(part, "matrix units of ") && strings.HasSuffix(part, " "+of) {
				list = append(list, of)
			}
		}
	}
	return list
}

// testUnits: products of 16-bit floats are right by matrix units, which are used if, and only if, the
// device has some for the dtype: in all layouts, in sizes that are no multiples of a tile, fused,
// in batches, cut into parts, and as on GPUs and on software adapters.
func testUnits(t *testing.T) {
	cut := func(i *gpurun.Info) { i.Limits.Binding, i.Points = 16*max(i.Limits.Align, 256), 1000 }
	for kind, say := range map[string]func(*gpurun.Info){"software": software, "hardware": hardware, "cut": cut} {
		d := openAs(t, say)
		units := strings.Join(unitsOf(d), " ")
		for _, of := range []string{"float16", "bfloat16"} {
			used := strings.Contains(" "+units+" ", " "+of+" ")
			for name, text := range halfProducts {
				layouts := [][]int64{{1, 70, 33, 65}, {2, 40, 37, 100}, {1, 150, 131, 21}, {3, 12, 64, 1}}
				if !used || kind == "cut" {
					layouts = layouts[:1] // other suites have the rest
				}
				for layout, dims := range layouts {
					x := newTrial(parse(t, strings.ReplaceAll(text, "T", of)), 3, dims...)
					x.matrices(layout&1 == 0, layout&2 == 0, layout%2 == 1)
					rng := rand.New(rand.NewPCG(uint64(layout), 1))
					for j := range x.args {
						if x.k.Operands[j].DT != ir.Bool {
							x.halves(rng, j)
						}
					}
					x.allScalars(1e30) // sums differ: no result is near it
					l := x.check(t, d, dotTolerance(dims[3]))
					if got := strings.Contains(sources(d, l), "matadd"); got != used && kind != "cut" {
						t.Errorf("%s of %s, %v on %s: matrix units are used: %v, want %v", name, of, dims, d.Caps().Description, got, used)
					}
				}
			}
		}
		if n := d.Stats().Fallbacks; n > 0 {
			t.Errorf("%s: %d fallbacks", kind, n)
		}
	}
}

// testUnitsWide: dense sides are loaded by vectors where sizes and layouts allow, in batches, with
// elements of 16 bits, of words, and of float32 in parts.
func testUnitsWide(t *testing.T) {
	for i, c := range []runtime.Config{{}, {Narrow: runtime.NarrowOff}, {Precision: runtime.PrecisionBF16x3}} {
		d := open(t, c, software)
		of := unitsOf(d)
		if len(of) == 0 {
			t.Skip("the adapter has no matrix units")
		}
		dt := of[0]
		if c.Precision != runtime.PrecisionFull {
			dt = "float32"
		}
		for layout, dims := range [][]int64{{2, 40, 36, 24}, {1, 64, 33, 41}, {1, 40, 52, 22}, {2, 36, 44, 68}} {
			if layout > 1 && i > 0 {
				break // compilers of software devices take seconds
			}
			x := newTrial(parse(t, dotKernel(dt)), 3, dims...)
			kInner := [2]bool{layout&1 == 0, layout&2 == 0}
			x.matrices(kInner[0], kInner[1], false)
			rng := rand.New(rand.NewPCG(uint64(layout), 3))
			tol := dotTolerance(dims[3])
			for j := range kInner {
				if dt == "float32" {
					x.exactInHalves(rng, j)
					tol.Abs = 0x3p-16 * 64 * float64(dims[3])
				} else {
					x.halves(rng, j)
				}
			}
			text := sources(d, x.check(t, d, tol))
			for j, side := range []string{"a", "b"} {
				line := dims[1+j] // along m or n
				if kInner[j] {
					line = dims[3]
				}
				if got := strings.Contains(text, "func quad_"+side+"("); got != (line%4 == 0) {
					t.Errorf("%s of %v, layout %d: side %s by vectors: %v", dt, dims, layout, side, got)
				}
			}
		}
	}
}

// testUnitsAhead: tiles that load a stretch while they multiply the one before are right, for one
// stretch and for several, whole or not.
func testUnitsAhead(t *testing.T) {
	testhook.SetChoice(0) // small launches have choices, too
	defer testhook.SetChoice(-1)
	d := openAs(t, hardware)
	of := unitsOf(d)
	if len(of) == 0 {
		t.Skip("the adapter has no matrix units")
	}
	k := parse(t, dotKernel(of[0]))
	for i, steps := range []int64{1, 31, 32, 64, 65, 160} {
		x := newTrial(k, 3, 2, 35, 40, steps)
		x.matrices(true, true, false)
		for j := range 2 {
			x.halves(rand.New(rand.NewPCG(uint64(i), uint64(j))), j)
		}
		l := x.launch(t, d)
		for _, c := range d.Choices(l).List {
			if c.Name == "units=32x32/16x16 ahead" { // compilers of software devices take seconds for others
				l.Choice = c.Code
			}
		}
		must(t, d.Run([]runtime.Launch{*l}))
		x.compare(t, d, l, dotTolerance(steps))
		if text := sources(d, l); !strings.Contains(text, " other ") {
			t.Fatalf("no stretch is loaded ahead in\n%s", text)
		}
	}
}

// testUnitsSpecial: units keep NaN, infinities and the smallest numbers.
func testUnitsSpecial(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	for _, of := range unitsOf(d) {
		dt, _ := ir.ParseDType(of)
		x := newTrial(parse(t, strings.ReplaceAll(halfProducts["to float32"], "T", of)), 3, 1, 32, 32, 16)
		x.matrices(true, false, false)
		set := func(operand, at int, v float64) {
			binary.LittleEndian.PutUint16(x.args[operand].Data[2*at:], uint16(ir.FloatBits(dt, v)))
		}
		for i := range 32 * 16 {
			set(0, i, 0)
			set(1, i, 1)
		}
		// Row r has one number, or two, besides zeros.
		least := 0x1p-24
		if dt == ir.BFloat16 {
			least = 0x1p-126 // its denormals may be flushed
		}
		for r, list := range [][]float64{{math.NaN()}, {math.Inf(1)}, {math.Inf(1), math.Inf(-1)}, {math.Inf(-1), 3}, {least}, {-3 * least, least}, {65504, 1}, {-2, 2}} {
			for i, v := range list {
				set(0, r*16+3+i, v)
			}
		}
		x.check(t, d, ir.Tolerance{})
	}
}

// testUnitsOff: the option forbids matrix units.
func testUnitsOff(t *testing.T) {
	d := openDevice(t, runtime.Config{Matrices: runtime.MatricesOff})
	x := newTrial(parse(t, dotKernel("float16")), 3, 1, 40, 40, 40)
	x.matrices(true, false, false)
	x.halves(rand.New(rand.NewPCG(1, 2)), 0)
	x.halves(rand.New(rand.NewPCG(3, 4)), 1)
	if l := x.check(t, d, dotTolerance(40)); strings.Contains(sources(d, l), "matadd") || len(unitsOf(d)) > 0 {
		t.Errorf("%s uses matrix units", d.Caps().Description)
	}
}

// HasUnits skips, unless the adapter has matrix units; with matrices in MILLRACE_REQUIRE it must have
// some.
func HasUnits(t *testing.T, x Target) {
	under = x
	if d := openDevice(t, runtime.Config{}); len(unitsOf(d)) == 0 {
		Missing(t, "matrices", fmt.Sprintf("%s has no matrix units", d.Caps().Description))
	}
}

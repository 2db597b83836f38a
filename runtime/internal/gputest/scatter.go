package gputest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Kernels that scatter operand 2 into operand 0 at indices, operand 1.
const (
	scatterKernel = "in 0 : DT row\nin 1 : int32\nin 2 : DT\nout 3 : DT row\n%0 = load 1 : int32\n%1 = load 2 : DT\n" +
		"%2 = scatter 0 MODE HOW %0 %1 : DT\nstore 3 %2"
	// Indices are computed, also by a scalar, and updates are looked up in a table.
	scatterMade = "in 0 : DT row\nin 1 : int32\nin 2 : DT\nout 3 : DT row\nscalar 0 : int32\n%0 = load 1 : int32\n%1 = scalar 0 : int32\n" +
		"%2 = add %0 %1 : int32\n%3 = loadat 2 MODE %0 : DT\n%4 = scatter 0 MODE HOW %2 %3 : DT\nstore 3 %4"
)

// scatterCase is a scatter of n indices into rows of size elements, one row for every point of
// kept.
type scatterCase struct {
	kept    []int64
	n, size int64
	axis    int  // position of the axis in memory among the kept dims; len(kept) is innermost
	same    bool // the indices do not depend on the last kept dim
	made    bool // scatterMade
}

// order returns strides of dims, with dim last moved to position axis.
func order(dims []int64, axis int) (a runtime.Access, n int64) {
	last := len(dims) - 1
	at := make([]int, 0, len(dims))
	for d := range last {
		at = append(at, d)
	}
	n = 1
	for _, d := range slices.Backward(slices.Insert(at, axis, last)) {
		a.Stride[d] = n
		n *= dims[d]
	}
	return a, n
}

func (c *scatterCase) trial(t testing.TB, dt ir.DType, mode, how string, inPlace bool, rng *rand.Rand) *trial {
	t.Helper()
	src := scatterKernel
	if c.made {
		src = scatterMade
	}
	src = strings.NewReplacer("DT", dt.String(), "MODE", mode, "HOW", how).Replace(src)
	last := len(c.kept)
	x := newTrial(parse(t, src), last, append(slices.Clone(c.kept), c.n)...)
	lay := func(operand int, a runtime.Access, n int64) {
		x.args[operand].Access, x.args[operand].Data = a, make([]byte, n*int64(x.k.Operands[operand].DT.Size()))
	}
	row, n := order(append(slices.Clone(c.kept), c.size), c.axis)
	row.IndexStride, row.IndexSize, row.Stride[last] = row.Stride[last], c.size, 0
	lay(0, row, n)
	lay(3, row, n)
	points, n := order(x.dims, c.axis)
	lay(1, points, n)
	lay(2, points, n)
	if c.same {
		at, n := order(append(slices.Clone(c.kept[:last-1]), c.n), min(c.axis, last-1))
		at.Stride[last], at.Stride[last-1] = at.Stride[last-1], 0
		lay(1, at, n)
	}
	shift := int64(0)
	if c.made {
		shift = -3
		x.scalars = []uint64{uint64(uint32(0xffffffff - 2))}
		lay(2, runtime.Access{IndexStride: 1, IndexSize: c.size + 3}, c.size+3)
	}
	x.fillInputs(rng)
	idx := x.args[1].Data
	for i := 0; i < len(idx); i += 4 {
		v := rng.Int64N(max(c.size, 1))
		if mode != "error" {
			if v = rng.Int64N(c.size+4) - 2; rng.IntN(20) == 0 {
				v = []int64{-1 << 31, 1<<31 - 1, 1 << 30}[rng.IntN(3)]
			}
		}
		binary.LittleEndian.PutUint32(idx[i:], uint32(v-shift))
	}
	if inPlace {
		x.shared[3] = 0
	}
	return x
}

// testScatter compares scatters with the interpreter: in every mode and combination, in place and
// not, whole and cut into dispatches of few points and windows smaller than a row.
func testScatter(t *testing.T) {
	whole := openDevice(t, runtime.Config{})
	cut := openAs(t, small)
	hows := []string{"set", "add", "max", "min", "mul"}
	dts := []ir.DType{ir.Float32, ir.Int32, ir.Uint8, ir.Int8, ir.BFloat16, ir.Float16, ir.Int16, ir.Uint32, ir.Uint16}
	for i, c := range []scatterCase{
		{n: 1, size: 1}, {n: 5, size: 3}, {n: 900, size: 70}, {n: 20000, size: 40}, {n: 50, size: 3000}, {n: 0, size: 9}, {n: 3, size: 0},
		{kept: []int64{64}, n: 30, size: 50, same: true}, {kept: []int64{64}, n: 30, size: 50}, {kept: []int64{30}, n: 20, size: 7, same: true, axis: 1},
		{kept: []int64{40}, n: 50, size: 60, axis: 1}, {kept: []int64{90}, n: 300, size: 8, axis: 1}, {kept: []int64{7}, n: 0, size: 5},
		{kept: []int64{3, 40}, n: 50, size: 20, axis: 1, same: true}, {kept: []int64{30, 8}, n: 3, size: 2, axis: 1}, {kept: []int64{2, 6, 7}, n: 40, size: 9},
		{n: 900, size: 70, made: true}, {kept: []int64{64}, n: 30, size: 50, made: true}, {kept: []int64{4, 5}, n: 6, size: 0, axis: 1},
	} {
		for j, mode := range []string{"error", "clamp", "drop"} {
			if c.size == 0 && mode == "error" {
				continue
			}
			for s, d := range []*device{whole, cut} {
				for _, inPlace := range []bool{false, true} {
					dt, how := dts[(i+j)%len(dts)], hows[(i+2*j)%len(hows)]
					if i == 3 || i == 4 {
						dt = ir.Float32
					}
					if i%5 == 0 && j == 0 {
						dt, how = ir.Bool, "set"
					}
					t.Run(fmt.Sprintf("%d %+v/%s/%s/%v/%d/%v", i, c, mode, how, dt, s, inPlace), func(t *testing.T) {
						x := c.trial(t, dt, mode, how, inPlace && !(c.made && mode == "error"), rand.New(rand.NewPCG(uint64(i), uint64(j))))
						tol := ir.Tolerance{}
						if how == "mul" {
							tol.Abs = 1.2e-38 // denormal products may be 0
						}
						x.check(t, d, tol)
					})
				}
			}
		}
	}
}

// testScatterFault: an index out of range, of the scatter or of its updates, is found before
// anything is written, however the launch is cut. The error names the smallest one, and neither the
// launch nor the next one has changed anything.
func testScatterFault(t *testing.T) {
	whole := openDevice(t, runtime.Config{})
	cut := openAs(t, small)
	for i, c := range []scatterCase{
		{n: 20000, size: 40}, {n: 50, size: 3000}, {kept: []int64{64}, n: 30, size: 50, same: true}, {kept: []int64{40}, n: 50, size: 60, axis: 1},
		{n: 9, size: 40, made: true}, {n: 3, size: 0},
	} {
		for s, d := range []*device{whole, cut} {
			t.Run(fmt.Sprintf("%+v/%d", c, s), func(t *testing.T) {
				x := c.trial(t, ir.Float32, "error", "add", true, rand.New(rand.NewPCG(uint64(i), 1)))
				idx := x.args[1].Data
				put := func(at int, v int64) { binary.LittleEndian.PutUint32(idx[at*4:], uint32(v)) }
				n, want := len(idx)/4, c.size
				put(n-1, want)
				put(n/2, want+9)
				if c.size == 0 {
					want = 0
				}
				if c.made { // by the scalar below 0
					put(n-1, 0)
					put(n/2, 1)
					want = -3
				}
				l := x.launch(t, d)
				before := d.Stats().Waits
				err := d.Run([]runtime.Launch{*l, *l})
				text := fmt.Sprintf("index %d, but the axis has %d elements", want, c.size)
				if at := (*runtime.LaunchError)(nil); !errors.As(err, &at) || at.Index != 0 || !errors.Is(err, ir.ErrIndex) || !strings.Contains(err.Error(), text) {
					t.Errorf("%v, want %q of launch 0", err, text)
				}
				if n := d.Stats().Waits - before; n == 0 {
					t.Error("nothing waited")
				}
				got := make([]byte, len(x.args[0].Data))
				if err := d.Read(got, ir.Float32, l.Args[0].Buf, 0); err != nil || !slices.Equal(got, x.args[0].Data) {
					t.Errorf("what is scattered into was changed (%v)", err)
				}
			})
		}
	}
}

// testScatterReach: an access beyond its memory is rejected.
func testScatterReach(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	c := scatterCase{kept: []int64{4}, n: 3, size: 5}
	for _, wrong := range [][]int{{}, {0}, {3}, {0, 3}} {
		for _, inPlace := range []bool{false, true} {
			x := c.trial(t, ir.Float32, "clamp", "set", inPlace, rand.New(rand.NewPCG(1, 1)))
			for _, i := range wrong {
				x.args[i].IndexSize = 1 << 20
			}
			l := x.launch(t, d)
			if err := d.Run([]runtime.Launch{*l}); (err != nil) != (len(wrong) > 0) {
				t.Errorf("operands %v too long: %v", wrong, err)
			}
		}
	}
}

package gputest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// turnedText is text that appears in shaders that read operands across in memory order: by squares
// of a workgroup, and in a loop.
var turnedText = map[string]string{"squares": "turned", "loops": " end = "}

// turnDevices are the adapter as hardware and as software.
func turnDevices(t *testing.T) map[string]*device {
	return map[string]*device{"squares": openAs(t, hardware), "loops": openAs(t, software)}
}

// layBy gives an operand's elements the order of dims, the outermost first.
func (x *trial) layBy(operand int, order ...int) {
	n := int64(1)
	for i := len(order) - 1; i >= 0; i-- {
		x.args[operand].Stride[order[i]] = n
		n *= x.dims[order[i]]
	}
}

// testTurned reads operands of each dtype across, over sizes with ragged ends.
func testTurned(t *testing.T) {
	devices := turnDevices(t)
	for _, c := range []struct{ dims, order []int64 }{
		{[]int64{33, 47}, []int64{1, 0}}, {[]int64{64, 64}, []int64{1, 0}}, {[]int64{16, 16}, []int64{1, 0}},
		{[]int64{3, 40, 35}, []int64{0, 2, 1}}, {[]int64{17, 5, 100}, []int64{2, 1, 0}}, {[]int64{31, 3, 5, 18}, []int64{3, 1, 2, 0}},
	} {
		for dt := ir.DType(1); dt < ir.NumDTypes; dt++ {
			if !shader.DTypes.Has(dt) {
				continue
			}
			for how, d := range devices {
				t.Run(fmt.Sprintf("%v/%v/%s", c.dims, dt, how), func(t *testing.T) {
					x := newTrial(parse(t, strings.ReplaceAll("in 0 : DT\nout 1 : DT\n%0 = load 0 : DT\nstore 1 %0", "DT", dt.String())), len(c.dims), c.dims...)
					order := make([]int, len(c.order))
					for i, o := range c.order {
						order[i] = int(o)
					}
					x.layBy(0, order...)
					x.fillInputs(rand.New(rand.NewPCG(1, uint64(dt))))
					if text := sources(d, x.check(t, d, ir.Tolerance{})); !strings.Contains(text, turnedText[how]) {
						t.Errorf("no %s:\n%s", how, text)
					}
				})
			}
		}
	}
}

// testTurnedRandom runs random kernels over random layouts, many of which are read across:
// broadcast, backwards, in place, with positions and several outputs.
func testTurnedRandom(t *testing.T) {
	devices := turnDevices(t)
	found := map[string]int{}
	for seed := range seeds() {
		rng := rand.New(rand.NewPCG(seed, 10))
		dims := []int64{int64(16 + rng.IntN(50)), int64(16 + rng.IntN(50))}
		if rng.IntN(2) == 0 {
			at := rng.IntN(3)
			dims = append(dims[:at:at], append([]int64{int64(1 + rng.IntN(4))}, dims[at:]...)...)
		}
		for how, d := range devices {
			x := randomTrialOver(rand.New(rand.NewPCG(seed, 11)), dims)
			text := sources(d, x.check(t, d, ir.Tolerance{}))
			if t.Failed() {
				t.Fatalf("seed %d, %s", seed, how)
			}
			if strings.Contains(text, turnedText[how]) {
				found[how]++
			}
		}
	}
	for how := range devices {
		if found[how] == 0 {
			t.Errorf("no %s in any kernel", how)
		}
	}
}

// testTurnedGuarded pads operands that are read across: guards depend on the point, not on the
// place in a square.
func testTurnedGuarded(t *testing.T) {
	const src = "in 0 : float32\nindex 1\nout 2 : float32\n%0 = indexlo 1 : uint32\n%1 = const 2 : uint32\n%2 = ge %0 %1 : bool\n" +
		"%3 = const 42 : uint32\n%4 = lt %0 %3 : bool\n%5 = and %2 %4 : bool\n%6 = load 0 %5 : float32\nstore 2 %6"
	for how, d := range turnDevices(t) {
		x := newTrial(parse(t, src), 2, 37, 45)
		x.args[1].Stride[0], x.args[1].Stride[1] = 0, 1 // the column, of which 2 to 41 are inside
		x.args[0].Stride[0], x.args[0].Stride[1] = 1, 37
		x.args[0].Offset = -2 * 37
		x.args[0].Data = x.args[0].Data[:40*37*4]
		x.fillInputs(rand.New(rand.NewPCG(3, 4)))
		if text := sources(d, x.check(t, d, ir.Tolerance{})); !strings.Contains(text, turnedText[how]) {
			t.Errorf("no %s:\n%s", how, text)
		}
	}
}

// testTurnedFaults looks up a table at indices that are read across: the error names the smallest
// one out of range, and indices that only fill a square are no faults.
func testTurnedFaults(t *testing.T) {
	for how, d := range turnDevices(t) {
		for bad, want := range map[int32]string{-3: "index -3,", 300: "index 300,", 0: ""} {
			x := lookUp(t, lookKernel, "error", ir.Float32, 2, []int64{35, 41}, []int64{1, 35}, []int64{0, 0}, 300, 1)
			if bad != 0 {
				binary.LittleEndian.PutUint32(x.args[0].Data[4*(35*41-1):], uint32(bad))
				binary.LittleEndian.PutUint32(x.args[0].Data[4*35:], 301)
			}
			l := x.launch(t, d)
			err := d.Run([]runtime.Launch{*l})
			switch {
			case want == "" && err != nil:
				t.Errorf("%s: %v", how, err)
			case want == "":
				x.compare(t, d, l, ir.Tolerance{})
			case !errors.Is(err, ir.ErrIndex) || !strings.Contains(err.Error(), want):
				t.Errorf("%s: %v, want ErrIndex with %q", how, err, want)
			}
			if text := sources(d, l); !strings.Contains(text, turnedText[how]) {
				t.Errorf("no %s:\n%s", how, text)
			}
		}
	}
}

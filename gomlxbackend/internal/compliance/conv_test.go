package compliance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

// convolved is a random convolution.
type convolved struct {
	dt                        dtypes.DType
	input, kernel             []int
	axes                      compute.ConvolveAxesConfig
	stride, spread, dilations []int
	pads                      [][2]int
	groups, sets              int
}

// newConvolved makes one along n axes. Images of batch groups keep their axis:
// elsewhere the Go backend takes another axis' size for their number.
func newConvolved(r *rand.Rand, dt dtypes.DType, n int) convolved {
	c := convolved{dt: dt, groups: 1, sets: 1}
	switch r.IntN(4) {
	case 0:
		c.groups = 1 + r.IntN(3)
	case 1:
		c.sets = 1 + r.IntN(3)
	}
	rank := n + 2
	in, kern, out := r.Perm(rank), r.Perm(rank), r.Perm(rank)
	if c.sets > 1 {
		k := slices.Index(out, in[0])
		out[0], out[k] = out[k], out[0]
	}
	c.axes = compute.ConvolveAxesConfig{
		InputBatch: in[0], InputChannels: in[1], InputSpatial: in[2:],
		KernelOutputChannels: kern[0], KernelInputChannels: kern[1], KernelSpatial: kern[2:],
		OutputBatch: out[0], OutputChannels: out[1], OutputSpatial: out[2:],
	}
	c.input, c.kernel = make([]int, rank), make([]int, rank)
	channels := 1 + r.IntN(3)
	c.input[in[0]], c.input[in[1]] = c.sets*(1+r.IntN(3)), c.groups*channels
	c.kernel[kern[0]], c.kernel[kern[1]] = c.sets*c.groups*(1+r.IntN(3)), channels
	for i := range n {
		c.input[in[2+i]], c.kernel[kern[2+i]] = 1+r.IntN(6), 1+r.IntN(3)
		c.stride = append(c.stride, 1+r.IntN(2))
		c.spread = append(c.spread, 1+r.IntN(2)*r.IntN(3))
		c.dilations = append(c.dilations, 1+r.IntN(2)*r.IntN(2))
		c.pads = append(c.pads, [2]int{r.IntN(4) - r.IntN(2), r.IntN(4) - r.IntN(2)})
	}
	for _, list := range []*[]int{&c.stride, &c.spread, &c.dilations} {
		if r.IntN(3) == 0 {
			*list = nil
		}
	}
	if r.IntN(3) == 0 {
		c.pads = nil
	}
	if r.IntN(25) == 0 {
		c.input[in[0]] = 0
	}
	if r.IntN(25) == 0 {
		c.kernel[kern[1]]++ // channels that do not fit
	}
	return c
}

func TestConvGeneralAgainstGo(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	r := rand.New(rand.NewPCG(31, 32))
	var n tally
	for i := range 400 {
		c := newConvolved(r, all[i%len(all)], []int{2, 1, 2, 3}[i%4])
		args := []arg{{random(r, c.dt, product(c.input)), c.input}, {random(r, c.dt, product(c.kernel)), c.kernel}}
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			n.add(same(t, b, ref, args, func(f compute.Function, in []compute.Value) (compute.Value, error) {
				return f.ConvGeneral(in[0], in[1], c.axes, c.stride, c.pads, c.spread, c.dilations, c.groups, c.sets)
			}))
		})
	}
	n.check(t, 150, 20)
}

// Axes that are not there are an error, whichever they are.
func TestConvGeneralAxes(t *testing.T) {
	b := open(t, "millrace:cpu")
	r := rand.New(rand.NewPCG(33, 34))
	good := compute.ConvolveAxesConfig{InputBatch: 0, InputChannels: 1, InputSpatial: []int{2}, KernelOutputChannels: 0, KernelInputChannels: 1,
		KernelSpatial: []int{2}, OutputBatch: 0, OutputChannels: 1, OutputSpatial: []int{2}}
	args := []arg{{random(r, dtypes.Float32, 24), []int{2, 3, 4}}, {random(r, dtypes.Float32, 18), []int{2, 3, 3}}}
	run := func(axes compute.ConvolveAxesConfig) error {
		_, _, err := evaluate(b, args, func(f compute.Function, in []compute.Value) (compute.Value, error) {
			return f.ConvGeneral(in[0], in[1], axes, nil, nil, nil, nil, 1, 1)
		})
		return err
	}
	if err := run(good); err != nil {
		t.Fatal(err)
	}
	for _, a := range []int{-1, 3} {
		for i := range 9 {
			bad := good.Clone()
			*[]*int{&bad.InputBatch, &bad.InputChannels, &bad.InputSpatial[0], &bad.KernelOutputChannels, &bad.KernelInputChannels,
				&bad.KernelSpatial[0], &bad.OutputBatch, &bad.OutputChannels, &bad.OutputSpatial[0]}[i] = a
			if err := run(bad); err == nil || err.Error()[:5] == "panic" {
				t.Errorf("axis %d in place %d: %v", a, i, err)
			}
		}
	}
}

package fusion

import (
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// model predicts kernel times from the figures in a device's caps. For figures that a device does
// not give (it may only plan), those of an ordinary CPU are used, so its plans look like those of
// other devices.
type model struct {
	bandwidth float64
	launch    float64
	op        float64
	stretch   float64
}

func newModel(c *runtime.Caps) model {
	m := model{bandwidth: c.Bandwidth, launch: c.LaunchCost, op: c.OpCost, stretch: c.StretchCost}
	if m.bandwidth <= 0 {
		m.bandwidth = 20e9
	}
	if m.launch <= 0 {
		m.launch = 2e-6
	}
	if m.op <= 0 {
		m.op = 20e-12
	}
	return m
}

// seconds is the predicted time of one kernel that moves bytes and executes ops instructions.
// Arithmetic and memory traffic overlap, but not wholly: the threads reach the end of their share
// together.
func (m model) seconds(bytes, ops int64) float64 {
	mem, work := float64(bytes)/m.bandwidth, float64(ops)*m.op
	return m.launch + max(mem, work) + min(mem, work)/4
}

func (x *explorer) elemSize(dt ir.DType) int64 {
	if n := x.caps.ElemSize[dt]; n > 0 {
		return int64(n)
	}
	return int64(dt.Size())
}

// total is the predicted time of all groups, in seconds.
func (x *explorer) total() float64 {
	sum := 0.0
	for _, g := range x.groups {
		sum += x.price(g).seconds
	}
	return sum
}

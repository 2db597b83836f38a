package optable

import (
	"fmt"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

// Peer is the call of the cases of internal/everyday/testdata that have its name.
type Peer struct {
	Name   string
	Halves bool // on 16-bit floats it is the op on Float32, rounded once
	Call   func(p millrace.Place, c *Case, x []*T) []*T
}

// Kernel is a call between other ops, and the number of kernels of all of them.
type Kernel struct {
	Name    string
	Kernels int64
	Call    func(p millrace.Place, x, v Maker) *T // x makes a matrix of 64×64, v a vector of 64
}

// Maker makes an operand by an op, a new one for each call.
type Maker = func() *T

// Case is a call with operands and results that another library gave. Ops that make tensors make
// them in p.
type Case struct {
	Op, Group string
	Spec      string
	Args      map[string][]float64
	In, Out   []Array
	Tol       float64
}

// Array is an operand or a result.
type Array struct {
	DType, Values string
	Shape         []int
}

// N is the argument of a name.
func (c *Case) N(name string) int { return int(c.Args[name][0]) }

// F is the argument of a name that is no whole number.
func (c *Case) F(name string) float64 { return c.Args[name][0] }

// List is the argument of a name that has several numbers.
func (c *Case) List(name string) []int {
	var l []int
	for _, x := range c.Args[name] {
		l = append(l, int(x))
	}
	return l
}

func (c *Case) String() string {
	var s []string
	for _, a := range c.In {
		s = append(s, fmt.Sprint(a.DType, a.Shape))
	}
	return fmt.Sprint(c.Op, c.Args, s, " to ", c.Out[0].DType)
}

// Type is the dtype.
func (a Array) Type() millrace.DType {
	dt, _ := ir.ParseDType(a.DType)
	return dt
}

func convolved(c *Case) millrace.ConvOptions {
	o := millrace.ConvOptions{Stride: c.List("stride"), Dilation: c.List("dilation"), Groups: c.N("groups")}
	for _, n := range c.List("pad") {
		o.Padding = append(o.Padding, [2]int{n, n})
	}
	return o
}

// PeerNamed is the call of a name.
func PeerNamed(name string) (Peer, bool) {
	for _, o := range All() {
		for _, p := range o.Peers {
			if p.Name == name {
				return p, true
			}
		}
	}
	return Peer{}, false
}

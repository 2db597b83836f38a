package gomlxbackend

import (
	"reflect"
	"slices"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

// A complex value is two values of a function, its real and its imaginary part,
// and a Node that names both: there is no complex tensor. Such a pair is taken
// apart while the graph is built, so that programs, closures and recordings know
// real nodes only, equal parts are merged, and a part that nobody needs is not
// computed. What an op does with pairs is told by one of the tables below.

// isComplex says that a node is a pair.
func (n *Node) isComplex() bool { return n.re != nil }

// parts are the nodes that a value is made of.
func (n *Node) parts() []*Node {
	switch {
	case n.isComplex():
		return []*Node{n.re, n.im}
	case n.isWide():
		return []*Node{n.flat}
	}
	return []*Node{n}
}

// apart are the nodes that values are made of.
func apart(list []*Node) []*Node {
	var all []*Node
	for _, n := range list {
		all = append(all, n.parts()...)
	}
	return all
}

// pair is the complex value with these parts, which are nodes of the function
// and of one shape.
func (f *Function) pair(op compute.OpType, re, im *Node) *Node {
	return &Node{fn: f, id: -1, op: op, shape: withDType(re.shape, complexOf[re.shape.DType]), re: re, im: im}
}

// pairOf is the complex value of parts that are made one after the other.
func (f *Function) pairOf(op compute.OpType, part func(i int) (*Node, error)) (*Node, error) {
	re, err := part(0)
	if err != nil {
		return nil, err
	}
	im, err := part(1)
	if err != nil {
		return nil, err
	}
	return f.pair(op, re, im), nil
}

var complexOf = map[dtypes.DType]dtypes.DType{dtypes.Float32: dtypes.Complex64, dtypes.Float64: dtypes.Complex128}

// byParts are the ops that do the same with either part: those that move
// elements, and sums. Operands that are not complex say where elements go, and
// are the same for both.
var byParts = map[compute.OpType]bool{
	compute.OpTypeReshape: true, compute.OpTypeTranspose: true, compute.OpTypeBroadcastInDim: true, compute.OpTypeSlice: true,
	compute.OpTypeReverse: true, compute.OpTypeConcatenate: true, compute.OpTypePad: true, compute.OpTypeWhere: true, compute.OpTypeGather: true,
	compute.OpTypeDynamicSlice: true, compute.OpTypeDynamicUpdateSlice: true, compute.OpTypeScatterSum: true,
	compute.OpTypeReduceSum: true, compute.OpTypeReduceWindow: true,
	compute.OpTypeAdd: true, compute.OpTypeSub: true, compute.OpTypeNeg: true,
}

// takesPairs are the ops that are built from pairs as from other nodes.
var takesPairs = map[compute.OpType]bool{
	compute.OpTypeIdentity: true, compute.OpTypeSchedulingBarrier: true, compute.OpTypeConvertDType: true, compute.OpTypeBitcast: true,
	compute.OpTypeReal: true, compute.OpTypeImag: true, compute.OpTypeFFT: true,
	compute.OpTypeDotGeneral: true, compute.OpTypeConvGeneral: true, compute.OpTypeReduceProduct: true,
	compute.OpTypeCall: true, compute.OpTypeIf: true, compute.OpTypeWhile: true, compute.OpTypeSort: true,
}

// made is the node of an op, some of whose operands may be pairs.
func (f *Function) made(op compute.OpType, in []*Node, make func(in []*Node) (*Node, error)) (*Node, error) {
	dt := complexAmong(in)
	switch {
	case wideAmong(in):
		return f.madeWide(op, in, make)
	case dt == dtypes.InvalidDType || takesPairs[op]:
		return make(in)
	case byParts[op]:
		return f.eachPart(op, in, make)
	}
	do, ok := complexOps[op]
	if !ok {
		return nil, errors.Errorf("not defined for %s", dt)
	}
	for i, n := range in {
		if n.shape.DType != dt {
			return nil, errors.Errorf("operand %d is no %s", i, dt)
		}
	}
	e := &expansion{f: f}
	n := do(e, in)
	return n, e.err
}

// complexAmong is the dtype of the first operand that is complex, if one is.
func complexAmong(in []*Node) dtypes.DType {
	for _, n := range in {
		if n != nil && n.isComplex() {
			return n.shape.DType
		}
	}
	return dtypes.InvalidDType
}

// eachPart is an op done with the real parts, and done with the imaginary ones.
func (f *Function) eachPart(op compute.OpType, in []*Node, make func(in []*Node) (*Node, error)) (*Node, error) {
	return f.pairOf(op, func(i int) (*Node, error) {
		part := slices.Clone(in)
		for k, n := range in {
			switch {
			case n.isComplex():
				part[k] = n.parts()[i]
			case n.shape.DType.IsFloat():
				return nil, errors.Errorf("operand %d is not complex, and others are", k)
			}
		}
		return make(part)
	})
}

// realOnly reports a complex result of an op that has none.
func realOnly(op compute.OpType, list ...shapes.Shape) error {
	for _, s := range list {
		if s.DType.IsComplex() {
			return errors.Errorf("%s: a result %s is not defined", op, s)
		}
	}
	return nil
}

// complexRow says how complex elements get to two tensors and back.
type complexRow struct {
	part  dtypes.DType
	split func(flat any) (re, im any)
	join  func(flat, re, im any)
}

// complexRows has a row for each complex dtype.
var complexRows = map[dtypes.DType]complexRow{
	dtypes.Complex64:  {dtypes.Float32, split[float32], join[float32]},
	dtypes.Complex128: {dtypes.Float64, split[float64], join[float64]},
}

// interleaved are the parts of complex elements as they lie in Go's memory.
func interleaved[T float32 | float64](flat any) []T {
	v := reflect.ValueOf(flat)
	if !v.IsValid() || v.Len() == 0 {
		return nil
	}
	return unsafe.Slice((*T)(v.UnsafePointer()), 2*v.Len())
}

func split[T float32 | float64](flat any) (any, any) {
	both := interleaved[T](flat)
	re, im := make([]T, len(both)/2), make([]T, len(both)/2)
	for i := range re {
		re[i], im[i] = both[2*i], both[2*i+1]
	}
	return re, im
}

func join[T float32 | float64](flat, re, im any) {
	both, x, y := interleaved[T](flat), re.([]T), im.([]T)
	for i := range x {
		both[2*i], both[2*i+1] = x[i], y[i]
	}
}

// toDevice copies elements to the device: im is nil but for complex ones.
func toDevice(p millrace.Place, flat any, shape shapes.Shape) (re, im *millrace.Tensor, err error) {
	row, ok := complexRows[shape.DType]
	if !ok {
		t := dtypeRows[shape.DType].upload(p, flat, dimsOf(shape))
		return t, nil, t.Err()
	}
	x, y := row.split(flat)
	part := dtypeRows[row.part]
	re, im = part.upload(p, x, dimsOf(shape)), part.upload(p, y, dimsOf(shape))
	if err = re.Err(); err == nil {
		err = im.Err()
	}
	if err != nil {
		re.Release()
		im.Release()
	}
	return re, im, err
}

// fromDevice copies elements from the device.
func fromDevice(flat any, dt dtypes.DType, re, im *millrace.Tensor) error {
	row, ok := complexRows[dt]
	if !ok {
		return dtypeRows[dt].read(flat, re)
	}
	n := reflect.ValueOf(flat).Len()
	x, y := dtypes.MakeAnySlice(row.part, n), dtypes.MakeAnySlice(row.part, n)
	part := dtypeRows[row.part]
	if err := part.read(x, re); err != nil {
		return err
	}
	if err := part.read(y, im); err != nil {
		return err
	}
	row.join(flat, x, y)
	return nil
}

package gomlxbackend

import (
	"maps"
	"reflect"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

// operations are the ops that the backend has: the rows of the tables, and
// those with a form of their own.
var operations = func() map[compute.OpType]bool {
	m := map[compute.OpType]bool{}
	list(m, maps.Keys(unaryOps), maps.Keys(predicates), maps.Keys(binaryOps), maps.Keys(comparisons), maps.Keys(reductions), maps.Keys(scatters))
	for _, op := range []compute.OpType{
		compute.OpTypeParameter, compute.OpTypeConstant, compute.OpTypeIota, compute.OpTypeIdentity,
		compute.OpTypeWhere, compute.OpTypeClamp, compute.OpTypeConvertDType,
		compute.OpTypeReshape, compute.OpTypeTranspose, compute.OpTypeBroadcastInDim, compute.OpTypeSlice,
		compute.OpTypeReverse, compute.OpTypeConcatenate, compute.OpTypePad,
		compute.OpTypeDynamicDimensionSize, compute.OpTypeDynamicShape, compute.OpTypeDynamicReshape,
		compute.OpTypeArgMinMax, compute.OpTypeDotGeneral,
		compute.OpTypeGather, compute.OpTypeDynamicSlice, compute.OpTypeDynamicUpdateSlice,
		compute.OpTypeReduceWindow, compute.OpTypeSelectAndScatterMax, compute.OpTypeSelectAndScatterMin, compute.OpTypeConvGeneral,
		compute.OpTypeComplex, compute.OpTypeReal, compute.OpTypeImag, compute.OpTypeConj, compute.OpTypeFFT,
		compute.OpTypeBitcast, compute.OpTypeRNGBitGenerator,
		compute.OpTypeBatchNormForInference, compute.OpTypeBatchNormForTraining, compute.OpTypeBatchNormGradient,
		compute.OpTypeCall, compute.OpTypeIf, compute.OpTypeWhile, compute.OpTypeSort,
		compute.OpTypeOptimizationBarrier, compute.OpTypeSchedulingBarrier,
		compute.OpTypeFusedSoftmax, compute.OpTypeFusedGelu, compute.OpTypeFusedLayerNorm, compute.OpTypeFusedDense,
		compute.OpTypeFusedQuantizedDense, compute.OpTypeFusedAttentionQKVProjection,
		compute.OpTypeFusedScaledDotProductAttention, compute.OpTypeQuantizedEmbeddingLookup,
	} {
		m[op] = true
	}
	for _, op := range later {
		m[op] = true
	}
	return m
}()

// sizesField of compute.Capabilities is new in 0.1.12.
const sizesField = "DynamicDimDType"

// nativeShapes says that one graph serves all sizes, which are of this dtype, where the
// version of compute has places for that: versions before 0.1.5 have none.
func nativeShapes(c *compute.Capabilities, size dtypes.DType) {
	const native = 1 // compute.DynamicShapesNative
	if f := reflect.ValueOf(c).Elem().FieldByName("DynamicShapes"); f.IsValid() {
		f.SetInt(native)
	}
	if f := reflect.ValueOf(c).Elem().FieldByName(sizesField); f.IsValid() {
		f.Set(reflect.ValueOf(size))
	}
}

func list(m map[compute.OpType]bool, tables ...func(func(compute.OpType) bool)) {
	for _, t := range tables {
		for op := range t {
			m[op] = true
		}
	}
}

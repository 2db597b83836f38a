package nn_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

func line() int {
	_, _, n, _ := runtime.Caller(1)
	return n
}

// TestLayerErrors: wrong shapes give an error that names the layer and the line of the call.
func TestLayerErrors(t *testing.T) {
	x := func(shape ...int) *tensor { return millrace.Ones(millrace.Float32, shape...) }
	ints := func(shape ...int) *tensor { return millrace.Ones(millrace.Int32, shape...) }
	train := nn.NewCtx(nn.CtxOptions{Train: true, Watch: true, Random: nn.NewRandom(1)})
	for name, c := range map[string]struct {
		f    func() (*tensor, int)
		text string
	}{
		"linear":        {func() (*tensor, int) { return nn.NewLinear(3, 4).Forward(nil, x(2, 5)), line() }, "linear (2,5), (4,3): shape"},
		"linear 0-d":    {func() (*tensor, int) { return nn.NewLinear(3, 4).Forward(train, x()), line() }, "linear (), (4,3): shape"},
		"linear nil":    {func() (*tensor, int) { return nn.NewLinear(3, 4).Forward(nil, nil), line() }, "linear (4,3): nil tensor"},
		"linear size":   {func() (*tensor, int) { l := nn.NewLinear(-3, 4); return l.Forward(nil, x(2, 5)), line() }, "is negative"},
		"linear option": {func() (*tensor, int) { l := nn.NewLinear(3, 4, nn.Stride(2)); return l.Forward(nil, x(2, 3)), line() }, "does not take the options Stride"},
		"conv":          {func() (*tensor, int) { return nn.NewConv2d(3, 4, 3).Forward(train, x(2, 5, 8, 8)), line() }, "conv (2,5,8,8), (4,3,3,3)"},
		"conv rank":     {func() (*tensor, int) { return nn.NewConv1d(3, 4, 3).Forward(nil, x(2, 3, 8, 8)), line() }, "conv (2,3,8,8), (4,3,3)"},
		"conv groups": {func() (*tensor, int) {
			l := nn.NewConv1d(3, 4, 3, nn.Groups(2))
			return l.Forward(nil, x(2, 3, 8)), line()
		}, "cannot be split into 2 groups"},
		"conv dims": {func() (*tensor, int) {
			l := nn.NewConv1d(3, 4, 3, nn.Pad(1, 2))
			return l.Forward(nil, x(2, 3, 8)), line()
		}, "has 2 numbers, the layer has 1 dimensions"},
		"convtranspose":  {func() (*tensor, int) { return nn.NewConvTranspose2d(3, 4, 3).Forward(nil, x(2, 5, 8, 8)), line() }, "convtranspose (2,5,8,8)"},
		"batchnorm":      {func() (*tensor, int) { return nn.NewBatchNorm2d(3).Forward(train, x(2, 4, 8, 8)), line() }, "batchnorm2d (2,4,8,8), (3)"},
		"batchnorm rank": {func() (*tensor, int) { return nn.NewBatchNorm1d(3).Forward(nil, x(2, 3, 8, 8)), line() }, "batchnorm1d (2,3,8,8), (3)"},
		"batchnorm one":  {func() (*tensor, int) { return nn.NewBatchNorm1d(3).Forward(train, x(1, 3)), line() }, "more than one value"},
		"layernorm":      {func() (*tensor, int) { return nn.NewLayerNorm(3).Forward(train, x(2, 4)), line() }, "layernorm (2,4)"},
		"rmsnorm":        {func() (*tensor, int) { return nn.NewRMSNorm(3).Forward(nil, x(2, 4)), line() }, "rmsnorm (2,4)"},
		"groupnorm":      {func() (*tensor, int) { return nn.NewGroupNorm(2, 4).Forward(nil, x(2, 3, 4)), line() }, "groupnorm (2,3,4)"},
		"groupnorm 3":    {func() (*tensor, int) { l := nn.NewGroupNorm(3, 4); return l.Forward(nil, x(2, 4, 4)), line() }, "cannot be split into 3 groups"},
		"embedding":      {func() (*tensor, int) { return nn.NewEmbedding(3, 4).Forward(nil, x(2)), line() }, "gather (3,4)"},
		"padding index": {func() (*tensor, int) {
			l := nn.NewEmbedding(3, 4, nn.PaddingIndex(3))
			return l.Forward(nil, millrace.Zeros(millrace.Int32, 2)), line()
		}, "padding index 3 does not exist"},
		"dropout": {func() (*tensor, int) { return nn.NewDropout(1.5).Forward(train, x(2)), line() }, "dropout (2)"},
		"dropout random": {func() (*tensor, int) {
			return nn.NewDropout(0.5).Forward(nn.NewCtx(nn.CtxOptions{Train: true}), x(2)), line()
		}, "needs random numbers"},
		"attention":       {func() (*tensor, int) { return nn.NewMultiHeadAttention(4, 2).Forward(nil, x(2, 3, 5)), line() }, "attention (2,3,5)"},
		"attention heads": {func() (*tensor, int) { l := nn.NewMultiHeadAttention(4, 3); return l.Forward(nil, x(2, 3, 4)), line() }, "cannot be split into 3 heads"},
		"attention keys": {func() (*tensor, int) {
			q := x(2, 3, 4)
			return nn.NewMultiHeadAttention(4, 2).Attend(nil, q, q, q, nn.Hide{Keys: millrace.Zeros(millrace.Bool, 2, 4)}), line()
		}, "attention"},
		"attention mask": {func() (*tensor, int) {
			q := x(2, 3, 4)
			return nn.NewMultiHeadAttention(4, 2).Attend(nil, q, q, q, nn.Hide{Mask: millrace.Zeros(millrace.Bool, 5, 4)}), line()
		}, "where (5,4)"},
		"attention ints": {func() (*tensor, int) {
			q := x(2, 3, 4)
			return nn.NewMultiHeadAttention(4, 2).Attend(nil, q, q, q, nn.Hide{Mask: ints(3, 3)}), line()
		}, "a mask cannot have dtype int32"},
		"rotary":    {func() (*tensor, int) { return nn.NewRotaryEmbedding(4, 10000).Forward(nil, x(2, 3, 6)), line() }, "rotary (2,3,6)"},
		"odd":       {func() (*tensor, int) { l := nn.NewRotaryEmbedding(3, 10000); return l.Forward(nil, x(2, 3)), line() }, "even number"},
		"gru":       {func() (*tensor, int) { return nn.NewGRU(4, 3).Forward(train, x(2, 3, 5)), line() }, "gru (2,3,5)"},
		"gru none":  {func() (*tensor, int) { return nn.NewGRU(4, 3).Forward(nil, x(0, 3, 4)), line() }, "gru (0,3,4)"},
		"gru state": {func() (*tensor, int) { y, _ := nn.NewGRU(4, 3).Run(nil, x(2, 3, 4), x(1, 2, 3)); return y, line() }, "gru (2,3,4), (1,2,3)"},
		"gru dtype": {func() (*tensor, int) { return nn.NewGRU(4, 3).Forward(nil, ints(2, 3, 4)), line() }, "int32 and float32"},
		"gru weights": {func() (*tensor, int) {
			return nn.NewGRU(4, 3).Forward(nil, x(2, 3, 4).Cast(millrace.Float16)), line()
		}, "float16 and float32"},
		"lstm dtype":      {func() (*tensor, int) { return nn.NewLSTM(4, 3).Forward(train, ints(2, 3, 4)), line() }, "int32 and float32"},
		"conv dtype":      {func() (*tensor, int) { return nn.NewConv1d(3, 4, 2).Forward(train, ints(2, 3, 4)), line() }, "the input has dtype int32, the kernels have float32"},
		"groupnorm dtype": {func() (*tensor, int) { return nn.NewGroupNorm(1, 3).Forward(nil, ints(2, 3, 4)), line() }, "int32"},
		"layernorm dtype": {func() (*tensor, int) { return nn.NewLayerNorm(4).Forward(nil, ints(2, 4)), line() }, "int32"},
		"rmsnorm dtype":   {func() (*tensor, int) { return nn.NewRMSNorm(4).Forward(nil, ints(2, 4)), line() }, "int32"},
		"batchnorm dtype": {func() (*tensor, int) { return nn.NewBatchNorm1d(3).Forward(train, ints(2, 3)), line() }, "int32"},
		"batchnorm kept":  {func() (*tensor, int) { return nn.NewBatchNorm1d(3).Forward(nil, ints(2, 3)), line() }, "int32"},
		"lstm":            {func() (*tensor, int) { _, _, m := nn.NewLSTM(4, 3).Run(nil, x(2, 3), nil, nil); return m, line() }, "lstm (2,3)"},
		"layers":          {func() (*tensor, int) { l := nn.NewLSTM(4, 3, nn.Layers(0)); return l.Forward(nil, x(2, 3, 4)), line() }, "0 layers"},
		"maxpool":         {func() (*tensor, int) { return nn.NewMaxPool2d(3).Forward(nil, x(2)), line() }, "maxpool2d (2)"},
		"pool pad": {func() (*tensor, int) {
			l := nn.NewMaxPool2d(3, nn.Pad(2))
			return l.Forward(nil, x(1, 1, 9, 9)), line()
		}, "at most half"},
		"avgpool": {func() (*tensor, int) { return nn.NewAvgPool1d(9).Forward(nil, x(2, 3, 4)), line() }, "avgpool (2,3,4)"},
		"flatten": {func() (*tensor, int) { return nn.Flatten{Start: 3}.Forward(nil, x(2, 3)), line() }, "flatten (2,3)"},
		"global":  {func() (*tensor, int) { return nn.GlobalAvgPool{}.Forward(nil, x(2, 3)), line() }, "globalavgpool (2,3)"},
		"dtype": {func() (*tensor, int) {
			l := nn.NewLinear(3, 4, nn.DType(millrace.Int32))
			return l.Forward(nil, x(3)), line()
		}, "int32 is not a float"},
		"option": {func() (*tensor, int) { l := nn.NewLinear(3, 4, nn.Option{}); return l.Forward(nil, x(3)), line() }, "without a function of package nn"},
		"sequential": {func() (*tensor, int) {
			return nn.NewSequential(nn.NewLinear(3, 4), nn.Tanh{}, nn.NewLinear(3, 4)).Forward(nil, x(2, 3)), line()
		}, "linear (2,4), (4,3)"},
		"init": {func() (*tensor, int) {
			l := nn.NewLinear(3, 4, nn.Biases(nn.InitOrthogonal(1)))
			return l.Forward(nil, x(3)), line()
		}, "needs two or more dimensions"},
	} {
		y, at := c.f()
		err := y.Err()
		var op *millrace.OpError
		if !errors.As(err, &op) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		own, before := fmt.Sprintf("errors_test.go:%d", at), fmt.Sprintf("errors_test.go:%d", at-1)
		if !strings.HasSuffix(op.Caller, own) && !strings.HasSuffix(op.Caller, before) {
			t.Errorf("%s: called at %s, not %s", name, op.Caller, own)
		}
		// Results computed from it carry the same error.
		if z := nn.MSE(y, y); z.Err() != err {
			t.Errorf("%s: then %v", name, z.Err())
		}
	}
}

// dtypesOf and ranksOf say for which operands of shape (4, …, 4) a layer or a loss has a result.
type (
	dtypesOf func(dt millrace.DType) bool
	ranksOf  [2]int // the least and the largest rank
)

// TestDTypesAndRanks calls each layer and each loss with every dtype and with ranks 0 to 5, in
// training and outside of it. Each call either has a result or carries the error of a wrong dtype or
// rank, with the line of the call. Nothing panics.
func TestDTypesAndRanks(t *testing.T) {
	all := []millrace.DType{millrace.Bool, millrace.Int8, millrace.Int16, millrace.Int32, millrace.Int64, millrace.Uint8, millrace.Uint16, millrace.Uint32, millrace.Uint64,
		millrace.Float16, millrace.BFloat16, millrace.Float32, millrace.Float64}
	const most = 5
	var (
		anyDType dtypesOf = func(millrace.DType) bool { return true }
		numbers  dtypesOf = func(dt millrace.DType) bool { return dt != millrace.Bool }
		ints     dtypesOf = millrace.DType.IsInt
		floats   dtypesOf = millrace.DType.IsFloat
		single   dtypesOf = func(dt millrace.DType) bool { return dt == millrace.Float32 } // that of the weights
	)
	from := func(least int) ranksOf { return ranksOf{least, most} }
	only := func(rank int) ranksOf { return ranksOf{rank, rank} }
	train := nn.NewCtx(nn.CtxOptions{Train: true, Watch: true, Random: nn.NewRandom(1)})
	type call func(c *nn.Ctx, x *tensor) (*tensor, int)
	forward := func(m nn.Module) call {
		return func(c *nn.Ctx, x *tensor) (*tensor, int) { return m.Forward(c, x), line() }
	}
	loss := func(f func(x, y *tensor, opts ...nn.LossOption) *tensor, opts ...nn.LossOption) call {
		return func(_ *nn.Ctx, x *tensor) (*tensor, int) { return f(x, x, opts...), line() }
	}
	attention := nn.NewMultiHeadAttention(4, 2)
	query := millrace.Ones(millrace.Float32, 4, 4, 4)
	targets := func(f func(x, y *tensor, opts ...nn.LossOption) *tensor, opts ...nn.LossOption) call {
		logits := millrace.Ones(millrace.Float32, 4, 3)
		return func(_ *nn.Ctx, x *tensor) (*tensor, int) { return f(logits, x, opts...), line() }
	}
	logits := func(f func(x, y *tensor, opts ...nn.LossOption) *tensor, opts ...nn.LossOption) call {
		return func(_ *nn.Ctx, x *tensor) (*tensor, int) {
			return f(x, millrace.Ones(millrace.Int32, x.Shape()[min(1, x.Rank()):]...), opts...), line()
		}
	}
	// Of floats, targets are probabilities, with other shapes.
	indices := func(dt millrace.DType) bool { return dt == millrace.Int32 || dt == millrace.Int64 }
	targetDTypes := slices.DeleteFunc(slices.Clone(all), millrace.DType.IsFloat)
	for name, c := range map[string]struct {
		call   call
		dtypes dtypesOf
		ranks  ranksOf
	}{
		"Linear":            {forward(nn.NewLinear(4, 3)), single, from(1)},
		"Conv1d":            {forward(nn.NewConv1d(4, 3, 2)), single, only(3)},
		"Conv2d":            {forward(nn.NewConv2d(4, 3, 2)), single, only(4)},
		"ConvTranspose1d":   {forward(nn.NewConvTranspose1d(4, 3, 2)), single, only(3)},
		"ConvTranspose2d":   {forward(nn.NewConvTranspose2d(4, 3, 2)), single, only(4)},
		"BatchNorm1d":       {forward(nn.NewBatchNorm1d(4)), floats, ranksOf{2, 3}},
		"BatchNorm1d plain": {forward(nn.NewBatchNorm1d(4, nn.Plain())), floats, ranksOf{2, 3}},
		"BatchNorm2d":       {forward(nn.NewBatchNorm2d(4)), floats, only(4)},
		"LayerNorm":         {forward(nn.NewLayerNorm(4)), floats, from(1)},
		"LayerNorm plain":   {forward(nn.NewLayerNorm(4, nn.Plain())), floats, from(1)},
		"LayerNormOver":     {forward(nn.NewLayerNormOver([]int{4, 4})), floats, from(2)},
		"RMSNorm":           {forward(nn.NewRMSNorm(4)), floats, from(1)},
		"RMSNormOver":       {forward(nn.NewRMSNormOver([]int{4, 4}, nn.Plain())), floats, from(2)},
		"GroupNorm":         {forward(nn.NewGroupNorm(2, 4)), floats, from(2)},
		"GroupNorm plain":   {forward(nn.NewGroupNorm(2, 4, nn.Plain())), floats, from(2)},
		"Embedding":         {forward(nn.NewEmbedding(5, 3)), ints, from(0)},
		"Embedding padded":  {forward(nn.NewEmbedding(5, 3, nn.PaddingIndex(0))), ints, from(0)},
		"Attention":         {forward(attention), single, only(3)},
		"Attention rotary":  {forward(nn.NewMultiHeadAttention(4, 2, nn.Rotary(10000))), single, only(3)},
		"keys": {func(c *nn.Ctx, x *tensor) (*tensor, int) {
			return attention.Attend(c, query, query, query, nn.Hide{Keys: x}), line()
		}, func(dt millrace.DType) bool { return dt == millrace.Bool }, only(2)},
		"mask": {func(c *nn.Ctx, x *tensor) (*tensor, int) {
			return nn.NewMultiHeadAttention(4, 4).Attend(c, query, query, query, nn.Hide{Mask: x}), line()
		}, func(dt millrace.DType) bool { return dt == millrace.Bool || dt.IsFloat() }, ranksOf{0, 4}},
		"RotaryEmbedding":    {forward(nn.NewRotaryEmbedding(4, 10000)), floats, from(2)},
		"GRU":                {forward(nn.NewGRU(4, 4)), single, only(3)},
		"LSTM":               {forward(nn.NewLSTM(4, 4, nn.BatchFirst(), nn.Bidirectional())), single, only(3)},
		"MaxPool1d":          {forward(nn.NewMaxPool1d(2)), numbers, from(1)},
		"MaxPool2d":          {forward(nn.NewMaxPool2d(2)), numbers, from(2)},
		"AvgPool1d":          {forward(nn.NewAvgPool1d(2, nn.Pad(1))), floats, from(1)},
		"AvgPool2d":          {forward(nn.NewAvgPool2d(2)), floats, from(2)},
		"GlobalAvgPool":      {forward(nn.GlobalAvgPool{}), floats, from(3)},
		"Dropout":            {forward(nn.NewDropout(0.5)), floats, from(0)},
		"Dropout of nothing": {forward(nn.NewDropout(0)), floats, from(0)},
		"Flatten":            {forward(nn.Flatten{}), anyDType, from(1)},
		"Identity":           {forward(nn.Identity{}), anyDType, from(0)},
		"ReLU":               {forward(nn.ReLU{}), numbers, from(0)},
		"GELU":               {forward(nn.GELU{}), floats, from(0)},
		"GELUTanh":           {forward(nn.GELUTanh{}), floats, from(0)},
		"SiLU":               {forward(nn.SiLU{}), floats, from(0)},
		"Tanh":               {forward(nn.Tanh{}), floats, from(0)},
		"Sigmoid":            {forward(nn.Sigmoid{}), floats, from(0)},
		"Softplus":           {forward(nn.Softplus{}), floats, from(0)},
		"LeakyReLU":          {forward(nn.LeakyReLU{}), floats, from(0)},
		"LeakyReLU by 2":     {forward(nn.LeakyReLU{Slope: 2}), numbers, from(0)},
		"ELU":                {forward(nn.ELU{}), floats, from(0)},
		"Softmax":            {forward(nn.Softmax{Axis: -1}), floats, from(1)},
		"Sequential":         {forward(nn.NewSequential(nn.Tanh{}, nn.NewLinear(4, 2))), single, from(1)},
		"MSE":                {loss(nn.MSE), floats, from(0)},
		"MSE summed":         {loss(nn.MSE, nn.Summed()), numbers, from(0)},
		"L1":                 {loss(nn.L1), floats, from(0)},
		"Huber":              {loss(nn.Huber), floats, from(0)},
		"Huber summed":       {loss(nn.Huber, nn.Summed()), floats, from(0)},
		"SmoothL1":           {loss(nn.SmoothL1), floats, from(0)},
		"BCEWithLogits":      {loss(nn.BCEWithLogits), floats, from(0)},
		"KLDiv":              {loss(nn.KLDiv), floats, from(0)},
		"KLDiv of logs":      {loss(nn.KLDiv, nn.LogTargets(), nn.BatchMean()), floats, from(1)},
		"CrossEntropy":       {loss(nn.CrossEntropy), floats, from(1)},
		"targets":            {targets(nn.CrossEntropy, nn.Summed()), indices, only(1)},
		"smoothed targets":   {targets(nn.CrossEntropy, nn.LabelSmoothing(0.5)), indices, only(1)},
		"ignored targets":    {targets(nn.CrossEntropy, nn.IgnoreIndex(2)), indices, only(1)},
		"NLL targets":        {targets(nn.NLL), indices, only(1)},
		"NLL":                {logits(nn.NLL, nn.Summed()), floats, from(1)},
		"CrossEntropy sums":  {logits(nn.CrossEntropy, nn.Summed()), floats, from(1)},
	} {
		dtypes := all
		if strings.HasSuffix(name, "targets") {
			dtypes = targetDTypes
		}
		for _, dt := range dtypes {
			for rank := range most + 1 {
				for _, ctx := range []*nn.Ctx{nil, train} {
					x := millrace.Ones(dt, slices.Repeat([]int{4}, rank)...)
					y, at := c.call(ctx, x)
					wantResult(t, fmt.Sprintf("%s of %v, rank %d", name, dt, rank), y.Err(), c.dtypes(dt), rank >= c.ranks[0] && rank <= c.ranks[1], at)
					y.Release()
				}
			}
		}
	}
	train.Release()
}

// wantResult checks the error of a call on a line: none if dtype and rank are right.
func wantResult(t *testing.T, name string, err error, dtype, rank bool, at int) {
	t.Helper()
	var op *millrace.OpError
	switch {
	case dtype && rank:
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	case !errors.As(err, &op) || !strings.HasSuffix(op.Caller, fmt.Sprintf("errors_test.go:%d", at)):
		t.Errorf("%s: %v, want an error of line %d", name, err, at)
	case dtype && !errors.Is(err, millrace.ErrShape), rank && !errors.Is(err, millrace.ErrDType):
		t.Errorf("%s: %v", name, err)
	}
}

package nn_test

import (
	"errors"
	"fmt"
	"runtime"
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
		"linear option": {func() (*tensor, int) { l := nn.NewLinear(3, 4, nn.Stride(2)); return l.Forward(nil, x(2, 3)), line() }, "unsupported options: Stride"},
		"conv":          {func() (*tensor, int) { return nn.NewConv2d(3, 4, 3).Forward(train, x(2, 5, 8, 8)), line() }, "conv (2,5,8,8), (4,3,3,3)"},
		"conv rank":     {func() (*tensor, int) { return nn.NewConv1d(3, 4, 3).Forward(nil, x(2, 3, 8, 8)), line() }, "conv (2,3,8,8), (4,3,3)"},
		"conv groups": {func() (*tensor, int) {
			l := nn.NewConv1d(3, 4, 3, nn.Groups(2))
			return l.Forward(nil, x(2, 3, 8)), line()
		}, "in 2 groups"},
		"conv dims": {func() (*tensor, int) {
			l := nn.NewConv1d(3, 4, 3, nn.Pad(1, 2))
			return l.Forward(nil, x(2, 3, 8)), line()
		}, "2 numbers for 1 dimensions"},
		"convtranspose":  {func() (*tensor, int) { return nn.NewConvTranspose2d(3, 4, 3).Forward(nil, x(2, 5, 8, 8)), line() }, "convtranspose (2,5,8,8)"},
		"batchnorm":      {func() (*tensor, int) { return nn.NewBatchNorm2d(3).Forward(train, x(2, 4, 8, 8)), line() }, "batchnorm2d (2,4,8,8), (3)"},
		"batchnorm rank": {func() (*tensor, int) { return nn.NewBatchNorm1d(3).Forward(nil, x(2, 3, 8, 8)), line() }, "batchnorm1d (2,3,8,8), (3)"},
		"batchnorm one":  {func() (*tensor, int) { return nn.NewBatchNorm1d(3).Forward(train, x(1, 3)), line() }, "more than one value"},
		"layernorm":      {func() (*tensor, int) { return nn.NewLayerNorm(3).Forward(train, x(2, 4)), line() }, "layernorm (2,4)"},
		"rmsnorm":        {func() (*tensor, int) { return nn.NewRMSNorm(3).Forward(nil, x(2, 4)), line() }, "rmsnorm (2,4)"},
		"groupnorm":      {func() (*tensor, int) { return nn.NewGroupNorm(2, 4).Forward(nil, x(2, 3, 4)), line() }, "groupnorm (2,3,4)"},
		"groupnorm 3":    {func() (*tensor, int) { l := nn.NewGroupNorm(3, 4); return l.Forward(nil, x(2, 4, 4)), line() }, "in 3 groups"},
		"embedding":      {func() (*tensor, int) { return nn.NewEmbedding(3, 4).Forward(nil, x(2)), line() }, "gather (3,4)"},
		"padding index": {func() (*tensor, int) {
			l := nn.NewEmbedding(3, 4, nn.PaddingIndex(3))
			return l.Forward(nil, millrace.Zeros(millrace.Int32, 2)), line()
		}, "padding index 3"},
		"dropout": {func() (*tensor, int) { return nn.NewDropout(1.5).Forward(train, x(2)), line() }, "dropout (2)"},
		"dropout random": {func() (*tensor, int) {
			return nn.NewDropout(0.5).Forward(nn.NewCtx(nn.CtxOptions{Train: true}), x(2)), line()
		}, "without random numbers"},
		"attention":       {func() (*tensor, int) { return nn.NewMultiHeadAttention(4, 2).Forward(nil, x(2, 3, 5)), line() }, "attention (2,3,5)"},
		"attention heads": {func() (*tensor, int) { l := nn.NewMultiHeadAttention(4, 3); return l.Forward(nil, x(2, 3, 4)), line() }, "in 3 heads"},
		"attention keys": {func() (*tensor, int) {
			q := x(2, 3, 4)
			return nn.NewMultiHeadAttention(4, 2).Attend(nil, q, q, q, nn.Hide{Keys: millrace.Zeros(millrace.Bool, 2, 4)}), line()
		}, "attention"},
		"attention mask": {func() (*tensor, int) {
			q := x(2, 3, 4)
			return nn.NewMultiHeadAttention(4, 2).Attend(nil, q, q, q, nn.Hide{Mask: millrace.Zeros(millrace.Bool, 5, 4)}), line()
		}, "where (5,4)"},
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
		"option": {func() (*tensor, int) { l := nn.NewLinear(3, 4, nn.Option{}); return l.Forward(nil, x(3)), line() }, "no function of package nn made"},
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

package nn_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// lossCases compute the losses of testdata/losses.safetensors; how holds the options of the
// reduction.
var lossCases = map[string]func(in []*tensor, w *tensor, how []nn.LossOption) *tensor{
	"crossentropy": func(in []*tensor, _ *tensor, how []nn.LossOption) *tensor {
		return nn.CrossEntropy(in[0], in[1], how...)
	},
	"crossentropy_ignore": func(in []*tensor, _ *tensor, how []nn.LossOption) *tensor {
		return nn.CrossEntropy(in[0], in[1], append(how, nn.IgnoreIndex(-100))...)
	},
	"crossentropy_weights": func(in []*tensor, w *tensor, how []nn.LossOption) *tensor {
		return nn.CrossEntropy(in[0], in[1], append(how, nn.IgnoreIndex(-100), nn.ClassWeights(w))...)
	},
	"crossentropy_smooth": func(in []*tensor, _ *tensor, how []nn.LossOption) *tensor {
		return nn.CrossEntropy(in[0], in[1], append(how, nn.IgnoreIndex(-100), nn.LabelSmoothing(0.1))...)
	},
	"crossentropy_all": func(in []*tensor, w *tensor, how []nn.LossOption) *tensor {
		return nn.CrossEntropy(in[0], in[1], append(how, nn.IgnoreIndex(-100), nn.ClassWeights(w), nn.LabelSmoothing(0.1))...)
	},
	"crossentropy_soft": func(in []*tensor, w *tensor, how []nn.LossOption) *tensor {
		return nn.CrossEntropy(in[0], in[1], append(how, nn.ClassWeights(w), nn.LabelSmoothing(0.1))...)
	},
	"crossentropy_image": func(in []*tensor, _ *tensor, how []nn.LossOption) *tensor {
		return nn.CrossEntropy(in[0], in[1], append(how, nn.ClassAxis(1))...)
	},
	"nll": func(in []*tensor, _ *tensor, how []nn.LossOption) *tensor { return nn.NLL(in[0], in[1], how...) },
	"nll_all": func(in []*tensor, w *tensor, how []nn.LossOption) *tensor {
		return nn.NLL(in[0], in[1], append(how, nn.IgnoreIndex(-100), nn.ClassWeights(w))...)
	},
	"bce": func(in []*tensor, _ *tensor, how []nn.LossOption) *tensor {
		return nn.BCEWithLogits(in[0], in[1], how...)
	},
	"bce_pos": func(in []*tensor, _ *tensor, how []nn.LossOption) *tensor {
		return nn.BCEWithLogits(in[0], in[1], append(how, nn.PosWeight(in[2]))...)
	},
	"mse": func(in []*tensor, _ *tensor, how []nn.LossOption) *tensor { return nn.MSE(in[0], in[1], how...) },
	"l1":  func(in []*tensor, _ *tensor, how []nn.LossOption) *tensor { return nn.L1(in[0], in[1], how...) },
	"huber": func(in []*tensor, _ *tensor, how []nn.LossOption) *tensor {
		return nn.Huber(in[0], in[1], append(how, nn.Delta(0.7))...)
	},
	"smoothl1": func(in []*tensor, _ *tensor, how []nn.LossOption) *tensor {
		return nn.SmoothL1(in[0], in[1], append(how, nn.Delta(0.7))...)
	},
	"kldiv": func(in []*tensor, _ *tensor, how []nn.LossOption) *tensor { return nn.KLDiv(in[0], in[1], how...) },
	"kldiv_log": func(in []*tensor, _ *tensor, how []nn.LossOption) *tensor {
		return nn.KLDiv(in[0], in[1], append(how, nn.LogTargets())...)
	},
}

// TestLosses compares every loss and its gradients with PyTorch's.
func TestLosses(t *testing.T) {
	r := readReference(t, "losses")
	reductions := map[string][]nn.LossOption{"mean": nil, "sum": {nn.Summed()}, "none": {nn.Each()}, "batch": {nn.BatchMean()}}
	seen := map[string]bool{}
	for _, name := range r.cases() {
		i := strings.LastIndexByte(name, '_')
		f, how := lossCases[name[:i]], reductions[name[i+1:]]
		if f == nil {
			t.Errorf("%s: no such case here", name)
			continue
		}
		seen[name[:i]] = true
		r.check(t, name, nil, true, func(_ *nn.Ctx, in []*tensor) []*tensor {
			return []*tensor{f(in, r["weights"], how)}
		})
	}
	if len(seen) != len(lossCases) {
		t.Errorf("%d losses of %d are in the file", len(seen), len(lossCases))
	}
}

// TestLossesWide: losses of 16-bit logits are computed in float32.
func TestLossesWide(t *testing.T) {
	r := readReference(t, "losses")
	x := r["crossentropy_mean/in.0"].Cast(millrace.BFloat16)
	y := r["crossentropy_mean/in.1"]
	got, want := nn.CrossEntropy(x, y), nn.CrossEntropy(x.Cast(millrace.Float32), y)
	if same, err := millrace.Equal(got, want); err != nil || !same {
		t.Errorf("%v and %v: %v", got, want, err)
	}
}

func TestLossErrors(t *testing.T) {
	f := millrace.Ones(millrace.Float32, 4, 3)
	i := millrace.Zeros(millrace.Int64, 4)
	for name, c := range map[string]struct {
		loss *tensor
		want error
		text string
	}{
		"shapes":      {nn.MSE(f, millrace.Ones(millrace.Float32, 4, 1)), millrace.ErrShape, "mse (4,3), (4,1): "},
		"targets":     {nn.CrossEntropy(f, millrace.Zeros(millrace.Int64, 3)), millrace.ErrShape, "crossentropy (4,3), (3): "},
		"probability": {nn.CrossEntropy(f, f.Slice(millrace.R(0, 2))), millrace.ErrShape, "classes along axis 1"},
		"axis":        {nn.CrossEntropy(f, i, nn.ClassAxis(2)), millrace.ErrShape, "no axis of classes"},
		"dtype":       {nn.CrossEntropy(f, millrace.Zeros(millrace.Uint8, 4)), millrace.ErrDType, "uint8"},
		"range":       {nn.CrossEntropy(f, i.AddScalar(3)), millrace.ErrIndex, ""},
		"ignored":     {nn.CrossEntropy(f, f, nn.IgnoreIndex(1)), millrace.ErrDType, "IgnoreIndex"},
		"nll":         {nn.NLL(f, f), millrace.ErrDType, "Int32 or Int64"},
		"weights":     {nn.NLL(f, i, nn.ClassWeights(millrace.Ones(millrace.Float32, 4))), millrace.ErrShape, "3 classes"},
		"other":       {nn.MSE(f, f, nn.Delta(1)), nil, "does not take the options Delta"},
		"both":        {nn.MSE(f, f, nn.Summed(), nn.Each()), nil, "the options Summed, Each cannot be combined"},
		"smoothing":   {nn.CrossEntropy(f, i, nn.LabelSmoothing(2)), millrace.ErrShape, "is not between 0 and 1"},
		"delta":       {nn.Huber(f, f, nn.Delta(0)), millrace.ErrShape, "is not above 0"},
		"nil":         {nn.MSE(f, nil), nil, "mse (4,3): nil tensor"},
		"zero option": {nn.MSE(f, f, nn.LossOption{}), nil, "without a function of package nn"},
	} {
		err := c.loss.Eval()
		var op *millrace.OpError
		if !errors.As(err, &op) || !strings.Contains(op.Caller, "loss_test.go:") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

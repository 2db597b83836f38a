package nn_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/safetensors"
)

// torchNet is the network of scripts/pytorch_weights.py.
type torchNet struct {
	Conv *nn.Conv
	BN   *nn.BatchNorm `nn:"bn"`
	Attn *nn.MultiHeadAttention
	LSTM *nn.LSTM `nn:"lstm"`
	Head *nn.Linear
}

func newTorchNet(seed uint64) *torchNet {
	s := nn.Seed(seed)
	return &torchNet{
		Conv: nn.NewConv2d(1, 8, 3, s, nn.Stride(2), nn.Pad(1)), BN: nn.NewBatchNorm2d(8, s),
		Attn: nn.NewMultiHeadAttention(8, 2, s), LSTM: nn.NewLSTM(8, 6, s, nn.BatchFirst()), Head: nn.NewLinear(6, 3, s),
	}
}

// run returns what each layer computes, in order.
func (n *torchNet) run(c *nn.Ctx, x *tensor) map[string]*tensor {
	r := map[string]*tensor{}
	r["conv"] = n.Conv.Forward(c, x)
	r["bn"] = n.BN.Forward(c, r["conv"])
	y := r["bn"].Relu().Flatten(2, -1).Transpose(1, 2)
	r["attn"] = n.Attn.Forward(c, y)
	r["lstm"] = n.LSTM.Forward(c, y.Add(r["attn"]))
	r["head"] = n.Head.Forward(c, r["lstm"].Slice(millrace.All, millrace.At(-1)))
	return r
}

// TestPyTorchWeights: a state_dict written by safetensors.torch.save_file gives PyTorch's results,
// layer by layer.
func TestPyTorchWeights(t *testing.T) {
	m := newTorchNet(1)
	if err := nn.Load("testdata/pytorch.safetensors", m); err != nil {
		t.Fatal(err)
	}
	want, err := safetensors.Load("testdata/pytorch_io.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	for name, y := range m.run(nn.Eval(), want["x"]) {
		near(t, name, y, want[name], tolerance)
	}
}

// saved rewrites PyTorch's file with other names and dtypes.
func saved(t *testing.T, change func(name string, x *tensor) (string, *tensor)) string {
	t.Helper()
	all, err := safetensors.Load("testdata/pytorch.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*tensor{}
	for name, x := range all {
		if name, x = change(name, x); name != "" {
			out[name] = x
		}
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	if err := safetensors.Save(path, out, nil); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLoadCast: with Cast, a file of 16-bit floats loads exactly into float32 parameters. Without
// Cast the error says so in a few lines.
func TestLoadCast(t *testing.T) {
	for _, dt := range []millrace.DType{millrace.Float16, millrace.BFloat16, millrace.Float64} {
		path := saved(t, func(name string, x *tensor) (string, *tensor) {
			if x.DType().IsFloat() {
				x = x.Cast(dt)
			}
			return name, x
		})
		m := newTorchNet(2)
		before := values(t, m.Head.Weight.Tensor())
		err := nn.Load(path, m)
		if !errors.Is(err, nn.ErrMismatch) || !strings.Contains(err.Error(), "nn.LoadOptions{Cast: true}") || !strings.Contains(err.Error(), "more") ||
			strings.Count(err.Error(), "\n") != 1 || len(err.Error()) > 600 {
			t.Errorf("%v: %v", dt, err)
		}
		if !slices.Equal(values(t, m.Head.Weight.Tensor()), before) {
			t.Errorf("%v: loaded all the same", dt)
		}
		if err := (nn.LoadOptions{Cast: true}).Load(path, m); err != nil {
			t.Fatal(err)
		}
		file, err := safetensors.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range nn.Params(m) {
			if same, err := millrace.Equal(p.Tensor(), file[p.Name].Cast(p.Tensor().DType())); err != nil || !same {
				t.Errorf("%v: %s: %v", dt, p.Name, err)
			}
		}
	}
	// Cast does not convert integers.
	path := saved(t, func(name string, x *tensor) (string, *tensor) {
		if name == "head.bias" {
			x = x.Cast(millrace.Int32)
		}
		return name, x
	})
	if err := (nn.LoadOptions{Cast: true}).Load(path, newTorchNet(2)); !errors.Is(err, nn.ErrMismatch) || !strings.Contains(err.Error(), "head.bias is I32") {
		t.Error(err)
	}
}

// TestLoadPartial: a parameter without an entry stays unchanged, and is reported.
func TestLoadPartial(t *testing.T) {
	path := saved(t, func(name string, x *tensor) (string, *tensor) {
		if rest, ok := strings.CutPrefix(name, "head."); ok {
			return "classifier." + rest, x
		}
		return name, x
	})
	m := newTorchNet(3)
	head, conv := values(t, m.Head.Weight.Tensor()), values(t, m.Conv.Weight.Tensor())
	err := nn.Load(path, m)
	for _, text := range []string{"missing in the file: head.weight, head.bias", "Partial: true", "Rename", "missing in the model: classifier.bias, classifier.weight"} {
		if !errors.Is(err, nn.ErrMismatch) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
	var told string
	o := nn.LoadOptions{Partial: true, Unmatched: func(p, e []string) { told = fmt.Sprint(p, e) }}
	if err := o.Load(path, m); err != nil {
		t.Fatal(err)
	}
	if told != "[head.bias head.weight] [classifier.bias classifier.weight]" {
		t.Error(told)
	}
	if !slices.Equal(values(t, m.Head.Weight.Tensor()), head) || slices.Equal(values(t, m.Conv.Weight.Tensor()), conv) {
		t.Error("the head was loaded, or the rest was not")
	}
	if err := o.Load(path, nn.NewGRU(2, 2)); !errors.Is(err, nn.ErrMismatch) || !strings.Contains(err.Error(), "no entry has a parameter") {
		t.Errorf("nothing in common: %v", err)
	}
	if err := o.Load(path, nn.Under("head", nn.NewLinear(3, 6)), nn.Under("classifier", nn.NewLinear(3, 6))); !errors.Is(err, nn.ErrMismatch) ||
		!strings.Contains(err.Error(), "[3 6] in the file and [6 3] in the model (its transpose)") {
		t.Errorf("another shape: %v", err)
	}
}

// TestLoadRename: entries find parameters by other names, and the error says if only a prefix
// differs.
func TestLoadRename(t *testing.T) {
	path := saved(t, func(name string, x *tensor) (string, *tensor) { return "module." + name, x })
	m := newTorchNet(4)
	if err := nn.Load(path, m); err == nil || !strings.Contains(err.Error(), `nn.Under("module", model)`) {
		t.Error(err)
	}
	if err := nn.Load(path, nn.Under("module", m)); err != nil {
		t.Error(err)
	}
	rename := func(entry string) string { return strings.TrimPrefix(entry, "module.") }
	if err := (nn.LoadOptions{Rename: rename}).Load(path, newTorchNet(5)); err != nil {
		t.Error(err)
	}
	if err := nn.Load("testdata/pytorch.safetensors", nn.Under("net", m)); err == nil || !strings.Contains(err.Error(), `without "net." in front`) {
		t.Error(err)
	}
	none := func(entry string) string {
		if strings.HasPrefix(entry, "module.lstm") {
			return ""
		}
		return rename(entry)
	}
	var told string
	o := nn.LoadOptions{Rename: none, Partial: true, Unmatched: func(p, e []string) { told = fmt.Sprint(len(p), len(e), e[0]) }}
	if err := o.Load(path, newTorchNet(6)); err != nil || told != "4 4module.lstm.bias_hh_l0" {
		t.Errorf("%s, %v", told, err)
	}
	one := nn.LoadOptions{Rename: func(string) string { return "weight" }}
	if err := one.Load(path, m.Head); !errors.Is(err, nn.ErrMismatch) || !strings.Contains(err.Error(), `the same name "weight"`) {
		t.Error(err)
	}
}

package nn_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/safetensors"
)

// TestLoadStateDict: a file written by PyTorch gives PyTorch's logits.
func TestLoadStateDict(t *testing.T) {
	m := newMLP(nn.Seed(1))
	if err := nn.Load("testdata/mlp.safetensors", m); err != nil {
		t.Fatal(err)
	}
	r := readReference(t, "models")
	near(t, "logits", m.Forward(nn.Eval(), r["mlp/in.0"]), r["mlp/out.1"], tolerance)
}

// TestSaveLoad: a model and the state of random numbers return with the same bits, and continue as
// the originals.
func TestSaveLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	type both struct {
		M *cnn
		G *gpt
	}
	one, r := &both{newCNN(), newGPT(nn.Seed(3))}, nn.NewRandom(5)
	c := nn.NewCtx(nn.CtxOptions{Train: true, Random: r})
	c.Uniform(3)
	if err := c.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := nn.Save(path, one, r, nn.Under("more", newMLP(nn.Seed(2)))); err != nil {
		t.Fatal(err)
	}
	two, s, mlp := &both{newCNN(), newGPT(nn.Seed(4))}, nn.NewRandom(6), newMLP(nn.Seed(5))
	if err := nn.Load(path, nn.Under("", two), s, nn.Under("more", mlp)); err != nil {
		t.Fatal(err)
	}
	pair := func(what string, a, b []nn.Named) {
		for i := range a {
			if same, err := millrace.Equal(a[i].Tensor(), b[i].Tensor()); a[i].Name != b[i].Name || err != nil || !same {
				t.Errorf("%s: %s and %s: %v", what, a[i].Name, b[i].Name, err)
			}
		}
	}
	pair("model", nn.Params(one), nn.Params(two))
	pair("random", r.State(), s.State())
	pair("under", nn.Params(newMLP(nn.Seed(2))), nn.Params(mlp))
	draw := func(r *nn.Random) []float32 { return values(t, nn.NewCtx(nn.CtxOptions{Random: r}).Uniform(5)) }
	if !slices.Equal(draw(r), draw(s)) {
		t.Error("random numbers are others")
	}
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !slices.Contains(f.Names(), "m.blocks.1.downsample.1.num_batches_tracked") || f.Metadata()["format"] != "pt" {
		t.Errorf("%q, %v", f.Names(), f.Metadata())
	}
}

// TestLoadDiffers: an error lists everything, and nothing is loaded.
func TestLoadDiffers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	from := map[string]*tensor{
		"weight": millrace.Ones(millrace.Float32, 3, 2), "bias": millrace.Ones(millrace.Float64, 3),
		"z.surplus": millrace.Ones(millrace.Int32), "a.surplus": millrace.Ones(millrace.Bool, 4), "kept": millrace.Ones(millrace.Float32, 2),
	}
	if err := safetensors.Save(path, from, nil); err != nil {
		t.Fatal(err)
	}
	m := struct {
		*nn.Linear
		Kept, More *nn.Param
	}{nn.NewLinear(3, 2), nn.NewParam(millrace.Zeros(millrace.Float32, 2)), weight()}
	m.Bias = nn.NewParam(millrace.Zeros(millrace.Float32, 3))
	err := nn.Load(path, m)
	want := `loading ` + path + `: the file and the model differ:
	of another shape: weight is [3 2] in the file and [2 3] in the model (its transpose)
	of another dtype: bias is F64 in the file and float32 in the model; nn.LoadOptions{Cast: true}.Load converts floats
	missing in the file: more; nn.LoadOptions{Partial: true}.Load leaves them as they are, Rename finds them by other names
	missing in the model: a.surplus, z.surplus; nn.LoadOptions{Partial: true}.Load leaves them out`
	if !errors.Is(err, nn.ErrMismatch) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if got := values(t, m.Kept.Tensor()); !slices.Equal(got, []float32{0, 0}) {
		t.Errorf("loaded all the same: %v", got)
	}
	if err := nn.Load(filepath.Join(t.TempDir(), "none"), m); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := nn.Load(path, m); !errors.Is(err, safetensors.ErrFormat) {
		t.Errorf("no such file: %v", err)
	}
}

// TestLoadTied: a file may hold tied weights under either name, or under both if they are equal.
func TestLoadTied(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	a, b := millrace.FromSlice([]float32{1, 2}), millrace.FromSlice([]float32{1, 3})
	for name, c := range map[string]struct {
		file map[string]*tensor
		bad  bool
	}{
		"first": {map[string]*tensor{"a": a}, false}, "second": {map[string]*tensor{"b": a}, false},
		"both": {map[string]*tensor{"a": a, "b": a}, false}, "others": {map[string]*tensor{"a": a, "b": b}, true},
	} {
		if err := safetensors.Save(path, c.file, nil); err != nil {
			t.Fatal(err)
		}
		p := nn.NewParam(millrace.Zeros(millrace.Float32, 2))
		err := nn.Load(path, &struct{ A, B *nn.Param }{p, p})
		if got := values(t, p.Tensor()); c.bad != errors.Is(err, nn.ErrMismatch) || !c.bad && (err != nil || !slices.Equal(got, []float32{1, 2})) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestLoadIntegers: a counter of another width is loaded if its number fits.
func TestLoadIntegers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	for n, fits := range map[int64]bool{7: true, 1 << 40: false} {
		if err := safetensors.Save(path, map[string]*tensor{"a": millrace.Scalar(n)}, nil); err != nil {
			t.Fatal(err)
		}
		p := nn.NewBuffer(millrace.Zeros(millrace.Int32))
		err := nn.Load(path, &struct{ A *nn.Param }{p})
		got, itemErr := millrace.Item[int32](p.Tensor())
		if (err == nil) != fits || itemErr != nil || fits && got != int32(n) {
			t.Errorf("%d: %d, %v, %v", n, got, err, itemErr)
		}
	}
}

func TestSaveErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	for name, c := range map[string]struct {
		parts []any
		text  string
	}{
		"twice": {[]any{nn.NewLinear(1, 1), nn.NewLinear(1, 1)}, "several parameters have the name weight, bias"},
		"bad":   {[]any{nn.NewLinear(-1, 1)}, `"weight": full: shape mismatch`},
	} {
		for _, err := range []error{nn.Save(path, c.parts...), nn.Load(path, c.parts...)} {
			if err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file is there: %v", err)
	}
}

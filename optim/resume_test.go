package optim

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/safetensors"
)

// save writes named tensors to a file, and load reads them into others of the same names.
func save(t *testing.T, path string, lists ...[]nn.Named) {
	t.Helper()
	all := map[string]*millrace.Tensor{}
	for _, list := range lists {
		for _, n := range list {
			if all[n.Name] != nil {
				t.Fatalf("%s is there twice", n.Name)
			}
			all[n.Name] = n.Tensor()
		}
	}
	if err := safetensors.Save(path, all, nil); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, path string, dev *millrace.Device, lists ...[]nn.Named) {
	t.Helper()
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, list := range lists {
		for _, n := range list {
			x, err := f.TensorOn(dev, n.Name)
			if err != nil {
				t.Fatal(err)
			}
			n.Tensor().Set(x)
			x.Release()
		}
	}
}

// TestResume: a run that was saved, and goes on in another device with other first
// values, has the bits of one that was not interrupted.
func TestResume(t *testing.T) {
	for name, make := range optimisers {
		for _, at := range []int{4, 5} { // between updates, and among the parts of one
			if at == 4 && name != "AdamW" {
				continue
			}
			for _, record := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/%v", name, at, record), func(t *testing.T) {
					const steps = 9
					start := func() (*model, *Optimizer, *nn.Random, *Step) {
						dev := open(t, "cpu:cache=off,compile=off")
						m := newModel(dev, millrace.Float32)
						m.drop = true
						r := nn.NewRandom(7, nn.On(dev))
						o := make(m.params(), Schedule(Warmup(5, 0.1, Cosine(0.05, 20))), LossScale(Scaling{Interval: 2}))
						how := []StepOption{Random(r), Accumulate(2)}
						if record {
							how = append(how, Record())
						}
						s := o.Step(m.loss, how...)
						t.Cleanup(s.Close)
						return m, o, r, s
					}
					m, o, r, s := start()
					train(t, m, s, 0, steps)
					want := all(t, o, append(m.params(), r.State()...))

					m, o, r, s = start()
					train(t, m, s, 0, at)
					path := filepath.Join(t.TempDir(), "state")
					save(t, path, m.params(), o.State(), r.State())
					m, o, r, s = start()
					train(t, m, s, 20, 23) // what is loaded replaces what was there
					load(t, path, m.dev, m.params(), o.State(), r.State())
					train(t, m, s, at, steps)
					same(t, "resumed", all(t, o, append(m.params(), r.State()...)), want)
				})
			}
		}
	}
}

package optim

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// TestResume: a run that was saved and continues on another device with other first values has the
// bits of an uninterrupted one.
func TestResume(t *testing.T) {
	for name, make := range optimisers {
		for _, at := range []int{4, 5} { // between updates, and within the parts of one
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
					if err := nn.Save(path, m, o, r); err != nil {
						t.Fatal(err)
					}
					m, o, r, s = start()
					train(t, m, s, 20, 23) // the load below replaces these values
					if err := nn.Load(path, m, o, r); err != nil {
						t.Fatal(err)
					}
					train(t, m, s, at, steps)
					same(t, "resumed", all(t, o, append(m.params(), r.State()...)), want)
				})
			}
		}
	}
}

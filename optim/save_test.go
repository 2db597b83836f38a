package optim

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/safetensors"
)

// TestSaveBesideSteps: a file written while steps run holds the state between two of them, and a
// file loaded meanwhile replaces everything at once.
func TestSaveBesideSteps(t *testing.T) {
	for _, how := range []string{"eager", "recorded", "bound"} {
		t.Run(how, func(t *testing.T) {
			dev := open(t, "cpu:cache=off,compile=off")
			a, b := newModel(dev, millrace.Float32), newModel(dev, millrace.Float32)
			a.drop = true
			random := nn.NewRandom(7, nn.On(dev))
			one, two := AdamW(a.params(), LR(0.01), Name("one")), SGD(b.params(), LR(0.01), Momentum(0.9), Name("two"))
			opts := []StepOption{Random(random)}
			if how != "eager" {
				opts = append(opts, Record())
			}
			s, other := one.Step(a.loss, opts...), two.Step(b.loss)
			in := batch(dev, 0, 6)
			run := func() error { _, err := s.Run(nil, in...); return err }
			if how == "bound" {
				bound, err := s.Bind(in...)
				if err != nil {
					t.Fatal(err)
				}
				defer bound.Close()
				run = bound.Run
			}
			now := func() string {
				return strings.Join(slices.Concat(bytesOf(a.params()), bytesOf(one.State()), bytesOf(random.State())), "\n")
			}
			steps := 40
			between := map[string]bool{now(): true} // all states that a file may have of the first model
			files := []string{filepath.Join(t.TempDir(), "0"), filepath.Join(t.TempDir(), "1")}
			stop, saved := make(chan struct{}), make(chan error, 2)
			seen := make([][]string, 2)
			parts := [][]any{{nn.Under("a", a), one, random, nn.Under("b", b), two}, {two, nn.Under("b", b), random, one, nn.Under("a", a)}}
			for k, file := range files { // two at once, with the parts in another order
				go func() {
					for {
						select {
						case <-stop:
							saved <- nil
							return
						default:
						}
						if err := nn.Save(file, parts[k]...); err != nil {
							saved <- err
							return
						}
						x, err := safetensors.LoadOn(dev, file)
						if err != nil {
							saved <- err
							return
						}
						var list []nn.Named
						for _, p := range slices.Concat(a.params(), one.State(), random.State()) {
							name := p.Name
							if x[name] == nil {
								name = "a." + name
							}
							list = append(list, nn.Named{Name: p.Name, Param: nn.NewBuffer(x[name])})
						}
						seen[k] = append(seen[k], strings.Join(bytesOf(list), "\n"))
					}
				}()
			}
			for i := range steps {
				if err := run(); err != nil {
					t.Fatal(err)
				}
				between[now()] = true
				if i%3 == 0 {
					if _, err := other.Run(nil, in...); err != nil {
						t.Fatal(err)
					}
				}
			}
			stop <- struct{}{}
			stop <- struct{}{}
			for range files {
				if err := <-saved; err != nil {
					t.Error(err)
				}
			}
			files2 := 0
			for _, list := range seen {
				for _, x := range list {
					if files2++; !between[x] {
						t.Fatalf("file %d is of no moment between two steps", files2)
					}
				}
			}
			if files2 == 0 {
				t.Error("no file was written")
			}
			if n := len(between); n != steps+1 {
				t.Errorf("%d moments, want %d", n, steps+1)
			}
		})
	}
}

// bytesOf returns parameters' elements by name.
func bytesOf(params []nn.Named) (list []string) {
	for _, p := range params {
		list = append(list, fmt.Sprintf("%s %x", p.Name, bytes(p.Tensor())))
	}
	return list
}

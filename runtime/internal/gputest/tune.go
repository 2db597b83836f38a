package gputest

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// testChoices compares every choice of launches of each kind with the interpreter, run and tried,
// and checks that every turn is used somewhere.
func testChoices(t *testing.T) {
	testhook.SetChoice(0) // small launches have choices, too
	defer testhook.SetChoice(-1)
	d := openDevice(t, runtime.Config{})
	chain := parse(t, "in 0 : float32\nin 1 : float32\nout 2 : float32\n%0 = load 0 : float32\n%1 = load 1 : float32\n%2 = exp %0 : float32\n%3 = fma %2 %1 %0 : float32\nstore 2 %3")
	softmax := parse(t, rowtext.Softmax)
	dot, biased := parse(t, dotKernel("float32")), parse(t, biasedKernel)
	trials := map[string]*trial{
		"chain": newTrial(chain, 2, 37, 64), "tail": newTrial(chain, 1, 1001), "rows": newTrial(softmax, 1, 13, 256), "few rows": newTrial(softmax, 2, 3, 4, 70),
	}
	for name, x := range map[string]*trial{"dot": newTrial(dot, 3, 2, 50, 70, 33), "biased": newTrial(biased, 3, 1, 130, 40, 20)} {
		x.matrices(true, false, false)
		trials[name] = x
		for i := range x.args {
			x.args[i].Data = append(x.args[i].Data, make([]byte, 1<<16)...) // room for all positions that the strides reach
		}
	}
	rng := rand.New(rand.NewPCG(31, 1))
	taken := map[string]bool{}
	for name, x := range trials {
		if len(x.k.Scalars) > 0 {
			x.scalars = []uint64{ir.FloatBits(ir.Float32, 0.4)}
		}
		x.fillInputs(rng)
		l := x.launch(t, d)
		unit := []runtime.Launch{*l}
		choices := d.Choices(l)
		if alone := strings.Contains(name, "rows"); alone != (len(choices.List) < 2) || alone != (choices.Facts == "") {
			t.Fatalf("%s: %+v", name, choices)
		}
		for _, c := range choices.List {
			taken[c.Name] = true
			unit[0].Choice = c.Code
			for what, run := range map[string]func() error{
				"run":   func() error { return d.Run(unit) },
				"tried": func() error { _, err := d.Try(&unit[0]); return err },
			} {
				for i, a := range unit[0].Args {
					if o := x.k.Operands[i]; o.Kind == codegen.Output {
						must(t, d.Write(a.Buf, o.DT, 0, make([]byte, len(x.args[i].Data))))
					}
				}
				if err := run(); err != nil {
					t.Fatalf("%s, %s by %s: %v", name, what, c.Name, err)
				}
				t.Logf("%s, %s by %s", name, what, c.Name)
				x.compare(t, d, &unit[0], ir.Tolerance{Rel: 1e-4, Abs: 1e-4})
			}
		}
	}
	if len(taken) < 8 {
		t.Errorf("only these were taken: %v", taken)
	}
	before := d.Stats()
	unit := []runtime.Launch{*trials["chain"].launch(t, d)}
	if _, err := d.Try(&unit[0]); err != nil {
		t.Fatal(err)
	}
	if s := d.Stats(); s.Launches != before.Launches || s.BytesRead != before.BytesRead {
		t.Error("a try was counted")
	}
	for _, code := range []uint64{100, 1 << 8} {
		unit[0].Choice = code
		if err := d.Run(unit); err == nil {
			t.Errorf("choice %#x, which there is not, was followed", code)
		}
	}
}

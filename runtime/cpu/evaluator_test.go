package cpu

import (
	"errors"
	"math/rand/v2"
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/internal/testing/procs"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/contract"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
)

// counted is an evaluator that counts calls and takes the place of tier 0's.
type counted struct {
	evaluator
	calls atomic.Int64
	wants int64 // bytes of scratch memory beyond its need
}

func (c *counted) eval(a *args, begin, end int64) {
	c.calls.Add(1)
	c.evaluator.eval(a, begin, end)
}

func (c *counted) scratch() int64 { return c.evaluator.scratch() + c.wants }

// TestEvaluators checks that every walker calls the phases' own evaluators, with the scratch
// memory that they need, and that refused memory is an error.
func TestEvaluators(t *testing.T) {
	procs.Use(t, 2)
	d := openTest(t, runtime.Config{Tier: -1, Threads: 2})
	e := newExecutor(2, nil, contract.Source{})
	defer e.close()
	for _, x := range goLaunches(t) {
		h := kernels.NewLaunch(rand.New(rand.NewPCG(17, 6)), x.kernel, x.dims, x.kept, kernels.Dense)
		if x.change != nil {
			x.change(h)
		}
		bound(t, d, x.kernel, h, func(l *runtime.Launch) {
			r, err := d.prepareFor(l, 2)
			if err != nil {
				t.Fatal(err)
			}
			r.code = &compiled{phasePlan: r.sched.plan}
			for _, code := range r.sched.tier0 {
				r.code.evaluators = append(r.code.evaluators, &counted{evaluator: code})
			}
			if err := e.run([]ready{r}); err != nil {
				t.Fatal(err)
			}
			compare(t, x.name, x.kernel, contents(t, d, x.kernel, h, l), reference(t, x.kernel, h))
			lies := 0 // number of phases whose values need no evaluation
			for _, c := range r.code.evaluators {
				if c.(*counted).calls.Load() == 0 {
					lies++
				}
			}
			if lies == len(r.code.evaluators) && lies > 1 {
				t.Errorf("%s: its evaluators were not called", x.name)
			}
			for _, c := range r.code.evaluators {
				c.(*counted).wants = 1 << 50
			}
			few := r
			few.wave = 1
			for _, list := range [][]ready{{r}, {few, few}} {
				if err := e.run(list); !errors.Is(err, errRefused) {
					t.Errorf("%s with a petabyte of scratch memory: %v", x.name, err)
				}
			}
		})
	}
}

// TestGoKeepsNothing checks that an executor whose threads wait for work keeps nothing of the last
// launch alive, and that its threads do not keep the executor alive.
func TestGoKeepsNothing(t *testing.T) {
	procs.Use(t, 2)
	d := openTest(t, runtime.Config{Tier: -1, Threads: 2})
	e := newExecutor(2, nil, contract.Source{})
	p, own := e.pool, weak.Make(e)
	defer p.Close()
	var bufs []weak.Pointer[memory.Buffer]
	for _, x := range goLaunches(t)[:6] {
		h := kernels.NewLaunch(rand.New(rand.NewPCG(17, 7)), x.kernel, x.dims, x.kept, kernels.Dense)
		if x.change != nil {
			x.change(h)
		}
		bound(t, d, x.kernel, h, func(l *runtime.Launch) {
			r, err := d.prepareFor(l, 2)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.run([]ready{r}); err != nil {
				t.Fatal(err)
			}
			for i := range l.Args {
				if b, ok := l.Args[i].Buf.(*memory.Buffer); ok {
					bufs = append(bufs, weak.Make(b))
				}
			}
		})
	}
	left := func() (n int) {
		for _, b := range bufs {
			if b.Value() != nil {
				n++
			}
		}
		return n
	}
	until := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
			if goruntime.GC(); time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	until("operands are kept", func() bool { return left() == 0 })
	goruntime.KeepAlive(e)
	for i := range e.memory {
		e.memory[i].Free()
	}
	e = nil
	until("the executor is kept by its threads", func() bool { return own.Value() == nil })
}

package cpu

import (
	"fmt"
	"testing"

	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/internal/testing/procs"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
)

// needMachine skips the test if no machine code is made.
func needMachine(t *testing.T) {
	t.Helper()
	if machine.Level() == machine.None {
		t.Skip("no machine code for this processor")
	}
}

var dotMemorySizes = []map[string]int64{
	{"i": 5, "j": 64, "k": 64, "b": 2},    // few rows
	{"i": 96, "j": 130, "k": 300, "b": 1}, // panels, packed for all threads
	{"i": 40, "j": 70, "k": 70, "b": 5},   // panels, packed by each thread
}

// keptBytes is the size up to which a contraction keeps the memory of its first thread.
const keptBytes = 64 << 10

// TestContractAllocates checks that launches with contractions allocate nothing from Go's heap
// after the first of their kind, and return almost everything that they borrow from the pool.
func TestContractAllocates(t *testing.T) {
	needMachine(t)
	procs.Use(t, 2)
	d := openTest(t, runtime.Config{Compile: runtime.CompileNative, Tier: 1, Threads: 2})
	for _, name := range []string{"plain", "around"} {
		k := rowKernel(t, dotKernels[name])
		for _, size := range dotMemorySizes {
			for _, c := range []int{0, 1, 4} {
				c := dotCases[c]
				bound(t, d, k, dotCase(k, c.dims, size, c.left, c.right, c.bias, c.residual, c.result), func(l *runtime.Launch) {
					r, err := d.prepareFor(l, 2)
					if err != nil {
						t.Fatal(err)
					}
					w := d.wide.Lend()
					defer d.wide.GiveBack(w)
					e, list := w.exec, []ready{r}
					run := func() {
						if err := e.run(list); err != nil {
							t.Fatal(err)
						}
					}
					run()
					if n := testing.AllocsPerRun(20, run); n >= 1 { // a garbage collection between runs causes less
						t.Errorf("%s %s, %v: %v allocations in a launch", name, c.name, size, n)
					}
					if lent := d.mem.Lent(); lent > 2*keptBytes {
						t.Errorf("%s %s, %v: %d bytes of the pool are not given back", name, c.name, size, lent)
					}
				})
			}
		}
	}
}

// TestContractMemoryLimit checks that packed data of a contraction counts towards the device's
// limit. With less memory it packs less, and without memory Go's loops run, which is counted; the
// bits are the same.
func TestContractMemoryLimit(t *testing.T) {
	needMachine(t)
	procs.Use(t, 2)
	k := rowKernel(t, dotKernels["plain"])
	size := map[string]int64{"i": 200, "j": 400, "k": 300, "b": 1}
	c := dotCases[1]
	h := dotCase(k, c.dims, size, c.left, c.right, c.bias, c.residual, c.result)
	want := reference(t, k, h)
	operands := int64(0)
	for i := range h.Args {
		operands += memory.SizeClass(int64(len(h.Args[i].Data)))
	}
	refused := false
	for _, spare := range []int64{64 << 20, 3 << 20, 1 << 20, 1 << 19, 1 << 17, 1 << 15} {
		d := openTest(t, runtime.Config{Compile: runtime.CompileNative, Tier: 1, Threads: 2, MemoryLimit: operands + spare})
		bound(t, d, k, h, func(l *runtime.Launch) {
			before := d.Stats()
			if err := d.Run([]runtime.Launch{*l}); err != nil {
				t.Fatal(err)
			}
			after := d.Stats()
			if after.Fallbacks > before.Fallbacks {
				refused = true
			} else if refused {
				t.Errorf("%d bytes are enough where more were not", spare)
			}
			if after.PeakBytes > before.PeakBytes {
				t.Error("a launch counts as the program's memory")
			}
			compare(t, fmt.Sprintf("with %d bytes to spare", spare), k, contents(t, d, k, h, l), want)
		})
	}
	if !refused {
		t.Error("a contraction has memory where there is none")
	}
}

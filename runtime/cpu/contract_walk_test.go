package cpu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/contract"
)

// walkCases are contractions from memory to memory in which a side or the results walk over
// several dims of a group: nothing is evaluated.
var walkCases = []struct {
	name, dims                string
	left, right, result       string
	size                      map[string]int64
	leftFlat, rightFlat, sink bool
	panels                    bool // a side is copied into panels in one call
}{
	{"images", "b j i h | c k p", "b=400 i=20 h=1 c=80 k=20 p=1", "j c k p", "b j i h",
		map[string]int64{"b": 2, "j": 5, "i": 2, "h": 18, "c": 3, "k": 3, "p": 3}, false, true, false, true},
	{"images, all of a size", "b j i h | c k p", "b=9000 i=70 h=1 c=1000 k=70 p=1", "j c k p", "b j i h",
		map[string]int64{"b": 2, "j": 3, "i": 4, "h": 64, "c": 9, "k": 6, "p": 5}, false, true, false, true},
	{"small images, blocks of k", "b j i h | c k p", "b=3000 i=10 h=1 c=100 k=10 p=1", "j c k p", "b j i h",
		map[string]int64{"b": 9, "j": 20, "i": 8, "h": 8, "c": 30, "k": 3, "p": 3}, false, true, false, true},
	{"columns of many panels", "b j i h | c k p", "b=972 i=18 h=1 c=324 k=18 p=1", "j c k p", "b j i h",
		map[string]int64{"b": 3, "j": 18, "i": 16, "h": 15, "c": 3, "k": 3, "p": 3}, false, true, false, true},
	{"strides", "b j i h | c k p", "b=900 i=80 h=2 c=300 k=40 p=1", "j c k p", "b j i h",
		map[string]int64{"b": 2, "j": 4, "i": 3, "h": 17, "c": 2, "k": 3, "p": 3}, false, true, false, false},
	{"of weights", "c k p j | b i h", "b=2000 c=500 i=20 k=20 h=1 p=1", "b j i h", "c k p j",
		map[string]int64{"b": 3, "c": 3, "k": 3, "p": 3, "j": 5, "i": 8, "h": 17}, false, false, true, false},
	{"of weights, strides", "j c k p | b i h", "b j i h", "b=2000 c=500 i=40 k=20 h=2 p=1", "j c k p",
		map[string]int64{"b": 3, "c": 2, "k": 3, "p": 3, "j": 17, "i": 5, "h": 7}, false, false, true, true},
	{"groups", "g b j i h | c p", "b=900 g=300 i=30 h=1 c=100 p=1", "g j c p", "b g j i h",
		map[string]int64{"g": 2, "b": 2, "j": 3, "i": 2, "h": 19, "c": 3, "p": 4}, false, true, false, true},
	{"backwards", "b j h | c p", "b=50 h=1 c=25 p=1", "j=12 c=3 p=-1", "b j h",
		map[string]int64{"b": 3, "j": 4, "h": 21, "c": 4, "p": 3}, false, false, false, true},
	{"results apart", "b j h | c", "b c h", "j c", "b h j",
		map[string]int64{"b": 3, "j": 4, "h": 21, "c": 7}, false, true, true, true},
}

// TestDotWalks compares such contractions with the oracle, on every device.
func TestDotWalks(t *testing.T) {
	ds := everyDevice(t)
	walkers := map[*device]func() int64{openTest(t, runtime.Config{Tier: -1, Threads: 2}): nil}
	if machine.Level() != machine.None {
		d := openTest(t, runtime.Config{Compile: runtime.CompileNative, Threads: 2})
		if walkers[d] = nil; machine.Level() == machine.AVX512 { // narrower vectors have other panels
			walkers[d] = contract.PanelsLoaded.Load
		}
	}
	for _, name := range []string{"plain", "doubles", "words", "longs"} {
		text := dotKernels["plain"]
		switch name {
		case "doubles":
			text = strings.ReplaceAll(text, "float32", "float64")
		case "words":
			text = strings.ReplaceAll(text, "float32", "int32")
		case "longs":
			text = strings.ReplaceAll(text, "float32", "uint64")
		}
		k := rowKernel(t, text)
		for _, c := range walkCases {
			h := dotCase(k, c.dims, c.size, c.left, c.right, "", "", c.result)
			if strings.Contains(c.right, "p=-1") {
				a := &h.Args[1]
				a.Access.Offset += c.size["p"] - 1
				a.Data = append(a.Data, a.Data[:64]...)
			}
			onEvery(t, ds, fmt.Sprintf("%s, %s", name, c.name), k, h)
			for d, panels := range walkers {
				bound(t, d, k, h, func(l *runtime.Launch) {
					r, err := d.prepareFor(l, d.threadsOf())
					if err != nil {
						t.Fatal(err)
					}
					sides := [2]bool{}
					for _, v := range r.dot.views[:2] {
						sides[v.part] = r.inMemory(&v, r.sched.plan) >= 0
					}
					if panels != nil {
						was := panels()
						if err := d.Run([]runtime.Launch{*l}); err != nil {
							t.Fatal(err)
						}
						if n := panels() - was; n > 0 != c.panels {
							t.Errorf("%s, %s: copied into panels at once %d times", name, c.name, n)
						}
					}
					if sides != [2]bool{c.leftFlat, c.rightFlat} || r.sink(r.sched.plan) >= 0 != c.sink || !r.plain() {
						t.Errorf("%s, %s: sides in memory %v, result %t, plain %t", name, c.name, sides, r.sink(r.sched.plan) >= 0, r.plain())
					}
				})
			}
		}
	}
}

package gpurun

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/runtime"
)

// TestForget: the shaders of a forgotten program are released, unless another program uses them. A
// later run of the program compiles them again, for that run.
func TestForget(t *testing.T) {
	d, f := open(t, runtime.Config{})
	left := func() int {
		d.sweep()
		return d.shaders.count()
	}
	run := func(l *runtime.Launch) {
		t.Helper()
		if err := d.Run([]runtime.Launch{*l}); err != nil {
			t.Fatal(err)
		}
	}
	launch := func(kernel string) *runtime.Launch { return launch(t, d, kernel, 1, 100) }
	one, same, other := launch(copyKernel), launch(copyKernel), launch(strings.Replace(copyKernel, "store 1 %0", "%1 = neg %0 : float32\nstore 1 %1", 1))
	for _, l := range []*runtime.Launch{one, same, other} {
		run(l)
	}
	if got := left(); got != 2 {
		t.Fatalf("%d shaders of two kernels", got)
	}
	for _, step := range []struct {
		what string
		do   func()
		want int
	}{
		{"the other", func() { d.Forget(other.Prog) }, 1},
		{"one of two with a shader in common", func() { d.Forget(one.Prog) }, 1},
		{"one again", func() { d.Forget(one.Prog) }, 1},
		{"both", func() { d.Forget(same.Prog) }, 0},
	} {
		if step.do(); left() != step.want {
			t.Errorf("%s forgotten: %d shaders, want %d", step.what, left(), step.want)
		}
	}
	run(one)
	run(same)
	run(one)
	if got := left(); got != 0 || f.pipelines != 0 {
		t.Errorf("%d shaders after forgotten programs were run, %d pipelines", got, f.pipelines)
	}
}

// TestBounded: a program that never repeats fills neither the list of parts nor the pool.
func TestBounded(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	b := &batch{dev: d}
	for n := range 2*maxParts + 10 {
		var text strings.Builder
		text.WriteString("in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\n")
		for i := range 10 { // by the digits of n in base 2
			fmt.Fprintf(&text, "%%%d = %s %%%d : float32\n", i+1, []string{"neg", "abs"}[n>>i&1], i)
		}
		text.WriteString("store 1 %10\n")
		if _, _, err := b.build(parse(t, text.String())); err != nil {
			t.Fatal(err)
		}
	}
	d.sweep()
	parts := len(d.parts.list)
	if parts != 10 {
		t.Errorf("%d parts are known, want the 10 since all were forgotten", parts)
	}
	for n := range int64(60) { // all sizes differ
		x, err := d.Alloc((4 + n) << 18)
		if err != nil {
			t.Fatal(err)
		}
		d.Free(x)
	}
	if s := d.Stats(); s.PoolBytes > poolFloor || s.PoolBytes < poolFloor/2 || s.AllocBytes != 0 {
		t.Errorf("%d bytes are pooled, %d live", s.PoolBytes, s.AllocBytes)
	}
}

package nn

import (
	"fmt"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestChanged: a pass lists the new values of buffers and of the random counter, and changes neither
// before Commit.
func TestChanged(t *testing.T) {
	var none *Ctx
	if p, v := none.Changed(); p != nil || v != nil {
		t.Errorf("a nil pass changed %v", p)
	}
	a, b := NewBuffer(millrace.Scalar[float32](1)), NewBuffer(millrace.Scalar[int32](2))
	r := NewRandom(3)
	from, err := millrace.Item[uint32](r.Counter.Tensor())
	if err != nil {
		t.Fatal(err)
	}
	c := NewCtx(CtxOptions{Train: true, Watch: true, Random: r})
	b.Update(c, b.In(c).AddScalar(1))
	a.Update(c, a.In(c).AddScalar(1))
	b.Update(c, b.In(c).AddScalar(1))
	c.Bits(2)
	Checkpoint(c, func(c *Ctx, in []*millrace.Tensor) []*millrace.Tensor {
		c.Normal(2)
		if p, _ := c.Changed(); len(p) != 3 {
			t.Errorf("a part of the pass lists %d", len(p))
		}
		return in
	}, millrace.Ones(millrace.Float32, 2))
	list, values := c.Changed()
	if len(list) != 3 || list[0] != b || list[1] != a || list[2] != r.Counter {
		t.Fatalf("%d buffers", len(list))
	}
	if got, want := fmt.Sprint(values), fmt.Sprintf("[4 2.0 %d]", from+3); got != want {
		t.Errorf("new values %s, want %s", got, want)
	}
	if got := fmt.Sprint(a.Tensor(), b.Tensor(), r.Counter.Tensor()); got != fmt.Sprintf("1.0 2 %d", from) {
		t.Errorf("values before Commit: %s", got)
	}
	if err := c.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(b.Tensor(), a.Tensor(), r.Counter.Tensor()); got != fmt.Sprintf("4 2.0 %d", from+3) {
		t.Errorf("values after Commit: %s", got)
	}
}

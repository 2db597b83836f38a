package autodiff_test

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
)

func hammerTime(t *testing.T) time.Time {
	t.Helper()
	d := time.Second
	if s := os.Getenv("HAMMER"); s != "" {
		var err error
		if d, err = time.ParseDuration(s); err != nil {
			t.Fatal("HAMMER: ", err)
		}
	}
	return time.Now().Add(d)
}

// TestHammerSharedWeight: goroutines with streams of their own take derivatives by one watched
// weight, which others set meanwhile, and through a graph that they all share. Each gets a
// derivative that is right for one value of the weight, or the error that the graph was given up.
func TestHammerSharedWeight(t *testing.T) {
	d := open(t, "cpu")
	w := autodiff.Watch(millrace.FullOn(d, millrace.Float64, 1, 64))
	until := hammerTime(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var trunk *T // replaced now and then
	fresh := func() *T {
		mu.Lock()
		defer mu.Unlock()
		if trunk == nil {
			trunk = w.MulScalar(2).Square().Exp().Log()
		}
		return trunk
	}
	for k := range 6 {
		s := d.NewStream()
		work := func(i int) error {
			switch {
			case k == 0: // whole numbers, so all derivatives are exact
				v := millrace.FullOn(s, millrace.Float64, float64(1+i%2), 64)
				w.Set(v)
				v.Release()
				return w.Err()
			case k == 1:
				mu.Lock()
				trunk = nil
				mu.Unlock()
				return nil
			case k < 4:
				return s.Scope(func(sc *millrace.Scope) error {
					x := w.To(sc)
					g, err := autodiff.Grad(x.Square().Mul(x).Sum(), w)
					if err != nil {
						return err
					}
					v, err := millrace.Values[float64](g[0])
					if err != nil {
						return err
					}
					for _, e := range v {
						if e != v[0] || e != 3 && e != 12 {
							return fmt.Errorf("derivatives %v", v)
						}
					}
					return nil
				})
			default:
				o := autodiff.Options{Keep: k == 4}
				h := fresh().To(s)
				g, err := o.Grad(h.Sum(), w)
				if errors.Is(err, autodiff.ErrGraph) && k > 3 {
					return nil // another goroutine's Grad was first
				}
				if err != nil {
					return err
				}
				v, err := millrace.Values[float64](g[0])
				if err != nil {
					return err
				}
				for _, e := range v {
					if e < 7.999 || e > 16.001 {
						return fmt.Errorf("derivatives %v", v)
					}
				}
				return nil
			}
		}
		wg.Go(func() {
			for i := 0; time.Now().Before(until); i++ {
				if err := work(i); err != nil {
					t.Errorf("goroutine %d: %v", k, err)
					return
				}
				if k < 2 {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
}

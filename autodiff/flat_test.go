package autodiff_test

import (
	"context"
	"os"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
)

// held counts the resources that a training loop has used up to some step.
type held struct {
	live       int64 // bytes that tensors hold
	taken      int64 // blocks allocated from the system
	bytes      int64 // memory of the device, including pooled memory
	planned    int64 // explorations, including those in the background
	compiled   int64
	recorded   int64
	goroutines int
	heap       uint64 // bytes of Go's heap; 0 if it was not measured
}

func holds(t *testing.T, d *millrace.Device, s *millrace.Stream, heap bool) held {
	t.Helper()
	if err := s.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	var m goruntime.MemStats
	if heap {
		goruntime.GC()
		goruntime.GC()
		goruntime.ReadMemStats(&m)
	}
	st := d.Stats()
	return held{st.LiveBytes, st.Runtime.Allocs - st.Runtime.PoolHits, st.Runtime.AllocBytes + st.Runtime.PoolBytes, st.Explorations,
		st.Runtime.Compiles, st.Recordings, goruntime.NumGoroutine(), m.HeapAlloc}
}

// TestTrainingIsFlat: a training loop holds no more tensors, memory, graphs and goroutines after
// many steps than after a few, and it plans, compiles and records nothing new. The last batch of
// each epoch is smaller.
func TestTrainingIsFlat(t *testing.T) {
	const epoch = 7
	steps, compile := 2000, "off" // a compiler would take longer than all steps
	switch {
	case os.Getenv("MILLRACE_LONG") != "":
		steps, compile = 10_000, "wait"
	case testing.Short():
		steps = 280
	}
	for _, how := range []string{"eager", "recorded"} {
		t.Run(how, func(t *testing.T) {
			d := open(t, "cpu:cache=off,explore=wait,compile="+compile)
			s := d.NewStream()
			defer s.Close()
			n := newNet(s, 12, 16, 5)
			recs := map[int]*millrace.Recording{} // a Recording is for one size
			for _, rows := range []int{8, 5} {
				recs[rows] = millrace.NewRecording(func(sc *millrace.Scope, in []*T) ([]*T, error) {
					l, err := train(n, in[0], in[1])
					return []*T{l}, err
				})
				defer recs[rows].Release()
			}
			step := func(sc *millrace.Scope, i int) error {
				rows := 8
				if i%epoch == epoch-1 {
					rows = 5
				}
				x, y := batch(sc, i%epoch, rows)
				if how == "eager" {
					l, err := train(n, x, y)
					if err != nil {
						return err
					}
					return l.Eval()
				}
				out, err := recs[rows].RunWith(nil, millrace.RunOptions{On: s}, x, y)
				if err != nil {
					return err
				}
				out[0].Release()
				return nil
			}
			var second, warm held
			for i := range steps {
				if err := s.Scope(func(sc *millrace.Scope) error { return step(sc, i) }); err != nil {
					t.Fatal(err)
				}
				switch last := i == steps-1; {
				case i == 1:
					second = holds(t, d, s, false)
				case i == epoch-2: // only full batches so far
					if now := holds(t, d, s, false); now.taken > second.taken {
						t.Errorf("the system gave %d blocks behind the second step", now.taken-second.taken)
					}
				case i == 7*epoch:
					warm = holds(t, d, s, true)
				case last || i > 7*epoch && i%epoch == 0:
					now := holds(t, d, s, last)
					for range 1000 { // a goroutine that has done its work takes a moment to end
						if now.goroutines <= warm.goroutines {
							break
						}
						time.Sleep(time.Millisecond)
						now.goroutines = goruntime.NumGoroutine()
					}
					now.goroutines = max(now.goroutines, warm.goroutines)
					same := now
					same.heap = warm.heap
					if same != warm || now.heap > warm.heap+1<<20 {
						t.Fatalf("after %d steps %+v; after %d %+v", i+1, now, 7*epoch+1, warm)
					}
					if last {
						t.Logf("after %d steps %+v", i+1, now)
					}
				}
			}
		})
	}
}

package apitest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
)

// Goroutines on shared and separate streams, with overlapping scopes, releases, handles that others
// release, and operands of other streams. Values are small whole numbers, so every right answer is
// known exactly. Run with -race, and HAMMER=30s for longer: each test takes that long, with one way
// to share a device or several.

// ways is the number of ways in streamsOf.
const ways = 3

// hammerTime is the time of one round of several.
func hammerTime(t *testing.T, turns int) time.Duration {
	t.Helper()
	s := os.Getenv("HAMMER")
	if s == "" {
		return time.Second
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal("HAMMER: ", err)
	}
	return d / time.Duration(turns)
}

const workers = 10

// hammer runs work on ten goroutines until the time is over or one fails. turns is how many
// rounds the test has.
func hammer(t *testing.T, turns int, dev *millrace.Device, stream func(worker int) *millrace.Stream, work func(s *millrace.Stream, rng *rand.Rand) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hammerTime(t, turns))
	defer cancel()
	var wg sync.WaitGroup
	for w := range workers {
		s := stream(w)
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 3))
			for ctx.Err() == nil {
				if err := work(s, rng); err != nil {
					t.Errorf("worker %d: %v", w, err)
					cancel()
				}
			}
		})
	}
	wg.Wait()
	if err := dev.Wait(); err != nil {
		t.Error(err)
	}
}

// streamsOf are the ways to share a device.
func streamsOf(dev *millrace.Device) map[string]func(int) *millrace.Stream {
	one := dev.NewStream()
	return map[string]func(int) *millrace.Stream{
		"one":     func(int) *millrace.Stream { return one },
		"ten":     func(int) *millrace.Stream { return dev.NewStream() },
		"default": func(int) *millrace.Stream { return dev.DefaultStream() },
	}
}

func wantAll(x *millrace.Tensor, n int, want float32) error {
	v, err := millrace.Values[float32](x)
	if err != nil {
		return err
	}
	if len(v) != n {
		return fmt.Errorf("%d values, want %d", len(v), n)
	}
	for i, f := range v {
		if f != want {
			return fmt.Errorf("value %d is %v, want %v", i, f, want)
		}
	}
	return nil
}

func TestHammerScopes(t *testing.T) {
	t.Parallel()
	dev := open(t, millrace.Options{})
	weights := millrace.FullOn(dev, millrace.Float32, 3, 1) // pending on the default stream
	for name, stream := range streamsOf(dev) {
		t.Run(name, func(t *testing.T) {
			hammer(t, ways, dev, stream, func(s *millrace.Stream, rng *rand.Rand) error {
				n, a := 1+rng.IntN(50), rng.IntN(10)
				var kept, lost *millrace.Tensor
				err := s.Scope(func(outer *millrace.Scope) error {
					x := millrace.FullOn(outer, millrace.Float32, float64(a), n)
					return outer.Scope(func(inner *millrace.Scope) error {
						y := millrace.FromSliceOn(inner, make([]float32, n)).Add(x).Mul(weights) // 3a
						lost = y.AddScalar(1)
						if rng.IntN(3) == 0 {
							if err := wantAll(y, n, float32(3*a)); err != nil {
								return err
							}
						}
						z := y.Add(lost) // 6a+1
						if rng.IntN(2) == 0 {
							y.Release()
						}
						kept = outer.Keep(inner.Keep(z.MulScalar(2))) // 12a+2
						return nil
					})
				})
				if err != nil {
					return err
				}
				if err := lost.Exp().Err(); !errors.Is(err, millrace.ErrReleased) {
					return fmt.Errorf("use after the scope: %v", err)
				}
				if err := wantAll(kept.AddScalar(1), n, float32(12*a+3)); err != nil {
					return fmt.Errorf("kept: %w", err)
				}
				return wantAll(kept, n, float32(12*a+2))
			})
		})
	}
	if err := wantAll(weights, 1, 3); err != nil {
		t.Errorf("weights: %v", err)
	}
}

// TestHammerSharing: every goroutine uses tensors of the others, on their streams, at any moment of
// those tensors' lives.
func TestHammerSharing(t *testing.T) {
	t.Parallel()
	dev := open(t, millrace.Options{})
	for name, stream := range streamsOf(dev) {
		t.Run(name, func(t *testing.T) {
			type entry struct {
				x *millrace.Tensor
				v float32
			}
			var mu sync.Mutex
			const n = 33
			pool := []entry{{millrace.FullOn(dev, millrace.Float32, 1, n), 1}}
			hammer(t, ways, dev, stream, func(s *millrace.Stream, rng *rand.Rand) error {
				mu.Lock()
				a, b := pool[rng.IntN(len(pool))], pool[rng.IntN(len(pool))]
				mu.Unlock()
				local := millrace.FullOn(s, millrace.Float32, 2, n)
				sum := a.x.Add(b.x).Add(local)
				v := a.v + b.v + 2
				if v > 1<<20 { // stay exact
					sum, v = sum.MulScalar(0).AddScalar(5), 5
				}
				local.Release()
				switch rng.IntN(4) {
				case 0:
					if err := wantAll(sum, n, v); err != nil {
						return err
					}
				case 1:
					if err := wantAll(sum.Slice(millrace.R(0, 10)).Flip(), 10, v); err != nil {
						return err
					}
				case 2:
					if err := s.Sync(context.Background()); err != nil {
						return err
					}
				}
				mu.Lock()
				if pool = append(pool, entry{sum, v}); len(pool) > 20 {
					i := rng.IntN(len(pool))
					if rng.IntN(2) == 0 {
						pool[i].x.Sub(pool[i].x) // a reader that is not waited for
					}
					pool = append(pool[:i], pool[i+1:]...)
				}
				mu.Unlock()
				return nil
			})
		})
	}
}

// TestHammerForeignRelease: releasing a tensor while others use it gives them its value or
// ErrReleased.
func TestHammerForeignRelease(t *testing.T) {
	t.Parallel()
	dev := open(t, millrace.Options{})
	const n = 64
	var shared struct {
		sync.Mutex
		x *millrace.Tensor
	}
	shared.x = millrace.FullOn(dev, millrace.Float32, 7, n)
	hammer(t, 1, dev, func(int) *millrace.Stream { return dev.NewStream() }, func(s *millrace.Stream, rng *rand.Rand) error {
		shared.Lock()
		x := shared.x
		shared.Unlock()
		if rng.IntN(10) == 0 {
			fresh := millrace.FullOn(s, millrace.Float32, 7, n)
			shared.Lock()
			shared.x = fresh
			shared.Unlock()
			x.Release()
			return nil
		}
		err := wantAll(x.AddScalar(1), n, 8)
		if errors.Is(err, millrace.ErrReleased) {
			return nil
		}
		return err
	})
}

// TestHammerOpenClose: devices are opened and closed while others work.
func TestHammerOpenClose(t *testing.T) {
	t.Parallel()
	dev := open(t, millrace.Options{})
	hammer(t, 1, dev, func(int) *millrace.Stream { return dev.NewStream() }, func(s *millrace.Stream, rng *rand.Rand) error {
		if rng.IntN(20) > 0 {
			return wantAll(millrace.OnesOn(s, millrace.Float32, 10).AddScalar(1), 10, 2)
		}
		d, err := millrace.Open("cpu:threads=1")
		if err != nil {
			return err
		}
		x := millrace.OnesOn(d, millrace.Float32, 10).MulScalar(3)
		err = wantAll(x.To(s), 10, 3)
		return errors.Join(err, d.Close())
	})
}

package threads

import (
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace-go/millrace/internal/testing/procs"
)

// counting counts how often each unit is done, and by which threads.
type counting struct {
	t       *testing.T
	done    []atomic.Int32
	threads atomic.Uint64
	most    int // most threads
	inside  atomic.Int32
	work    time.Duration
}

func (c *counting) Share(who int, begin, end int64) {
	if n := c.inside.Add(1); int(n) > c.most || who >= c.most {
		c.t.Errorf("%d threads at once, number %d one of them, where there may be %d", n, who, c.most)
	}
	busy(c.work)
	c.threads.Or(1 << who)
	for i := begin; i < end; i++ {
		c.done[i].Add(1)
	}
	c.inside.Add(-1)
}

// busy spins for a duration.
func busy(d time.Duration) {
	for begin := time.Now(); time.Since(begin) < d; {
	}
}

func (c *counting) run(p *Pool, n int, total, grain int64) {
	c.most = max(min(n, len(p.workers)+1, goruntime.GOMAXPROCS(0)), 1)
	clear(c.done)
	p.Split(n, total, grain, c)
	for i := range c.done {
		if got := c.done[i].Load(); got != 1 && i < int(total) || got != 0 && i >= int(total) {
			c.t.Fatalf("unit %d of %d was done %d times on at most %d threads", i, total, got, n)
		}
	}
}

// TestPoolShares checks that each unit is done once before split returns, for any number of
// threads and size of shares.
func TestPoolShares(t *testing.T) {
	procs.Use(t, 3)
	p := NewPool(4)
	defer p.Close()
	c := &counting{t: t, done: make([]atomic.Int32, 500)}
	rng := rand.New(rand.NewPCG(17, 2))
	for i := range 3000 {
		if i%400 == 0 {
			time.Sleep(time.Millisecond) // all threads sleep
		}
		c.run(p, 1+rng.IntN(5), rng.Int64N(500), 1+rng.Int64N(60))
	}
	if n := p.running.Load(); n != 3 {
		t.Errorf("%d threads for 3 processors", n)
	}
	if p.job != nil {
		t.Error("the last job is kept")
	}
}

// TestPoolThreads checks that threads start when there is work for them, sleep after a while
// without work, wake for a job or by rouse, and end with the pool.
func TestPoolThreads(t *testing.T) {
	before := goruntime.NumGoroutine()
	procs.Use(t, 2)
	p := NewPool(2)
	c := &counting{t: t, done: make([]atomic.Int32, 8)}
	c.run(p, 2, 8, 8)
	if p.running.Load() != 1 {
		t.Error("a thread was started for one share")
	}
	sleep := func() {
		t.Helper()
		for end := time.Now().Add(time.Minute); p.sleeping.Load() != p.running.Load()-1; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d threads of %d sleep", p.sleeping.Load(), p.running.Load())
			}
		}
	}
	c.work = time.Millisecond
	for range 3 {
		together := false
		for tries := 0; tries < 200 && !together; tries++ { // on a busy machine a woken thread may come late
			c.threads.Store(0)
			c.run(p, 2, 8, 1)
			together = c.threads.Load() == 3
			sleep()
		}
		if !together {
			t.Error("one thread always took all shares of a millisecond")
		}
	}
	roused := false
	for range 1000 {
		p.Rouse()
		roused = roused || p.sleeping.Load() == 0
		sleep()
		if roused {
			break
		}
	}
	if !roused {
		t.Error("nobody was roused")
	}
	p.Close()
	for end := time.Now().Add(time.Minute); goruntime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", goruntime.NumGoroutine(), before)
		}
	}
}

// TestPoolOneProcessor checks that there are no other threads with one processor.
func TestPoolOneProcessor(t *testing.T) {
	procs.Use(t, 1)
	p := NewPool(4)
	defer p.Close()
	c := &counting{t: t, done: make([]atomic.Int32, 100)}
	for range 10 {
		c.run(p, 4, 100, 1)
	}
	if p.running.Load() != 1 || c.threads.Load() != 1 {
		t.Errorf("%d threads, of which %b worked", p.running.Load(), c.threads.Load())
	}
	goruntime.GOMAXPROCS(2)
	c.work = 100 * time.Microsecond
	for range 20 {
		c.run(p, 4, 100, 1)
	}
	if p.running.Load() != 2 || c.threads.Load() != 3 {
		t.Errorf("%d threads, of which %b worked, once there are two processors", p.running.Load(), c.threads.Load())
	}
}

// TestPoolHammer uses many pools at once, during constant garbage collection and changes of
// GOMAXPROCS.
func TestPoolHammer(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	procs.Use(t, 2)
	stop := make(chan struct{})
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		for n := 1; ; n = n%4 + 1 {
			select {
			case <-stop:
				return
			default:
				goruntime.GOMAXPROCS(n)
				time.Sleep(3 * time.Millisecond)
			}
		}
	}()
	lists := 6000
	if testing.Short() {
		lists = 600
	}
	var all [3]chan struct{}
	for g := range all {
		all[g] = make(chan struct{})
		go func() {
			defer close(all[g])
			rng := rand.New(rand.NewPCG(17, uint64(g)))
			p := NewPool(1 + g*2)
			defer p.Close()
			c := &counting{t: t, done: make([]atomic.Int32, 200)}
			for range lists {
				c.most = 64
				clear(c.done)
				total := rng.Int64N(200)
				p.Split(1+rng.IntN(6), total, 1+rng.Int64N(20), c)
				for i := range c.done[:total] {
					if n := c.done[i].Load(); n != 1 {
						t.Errorf("unit %d of %d was done %d times", i, total, n)
					}
				}
				garbage := make([]byte, 64<<10)
				kept.Store(&garbage)
				if rng.IntN(20) == 0 {
					p.Rouse()
					time.Sleep(time.Duration(rng.IntN(100)) * time.Microsecond)
				}
			}
		}()
	}
	for _, done := range all {
		<-done
	}
	close(stop)
	<-changed
}

// kept forces memory onto the heap.
var kept atomic.Pointer[[]byte]

// TestPoolAllocates checks that a job allocates nothing.
func TestPoolAllocates(t *testing.T) {
	procs.Use(t, 2)
	p := NewPool(2)
	defer p.Close()
	c := &counting{t: t, done: make([]atomic.Int32, 100), most: 2}
	if n := procs.Allocations(func() { p.Split(2, 100, 10, c) }); n > 0.5 {
		t.Errorf("%v allocations for a job", n)
	}
}

// working takes a time proportional to its units.
type working struct{ unit time.Duration }

func (w *working) Share(_ int, begin, end int64) { busy(time.Duration(end-begin) * w.unit) }

// BenchmarkPool times a job of two shares, in close succession and after pauses in which threads
// fall asleep.
func BenchmarkPool(b *testing.B) {
	for _, unit := range []time.Duration{10, 50, 100, 500} {
		for _, pause := range []time.Duration{0, 100, 2000} {
			b.Run(fmt.Sprintf("share=%dus/pause=%dus", unit, pause), func(b *testing.B) {
				p := NewPool(2)
				defer p.Close()
				w := &working{unit * time.Microsecond}
				var total, best time.Duration
				best = time.Hour
				for b.Loop() {
					time.Sleep(pause * time.Microsecond)
					begin := time.Now()
					p.Split(2, 2, 1, w)
					d := time.Since(begin)
					total += d
					best = min(best, d)
				}
				b.ReportMetric(float64(total.Nanoseconds())/float64(b.N)/1e3, "us/job")
				b.ReportMetric(float64(best.Nanoseconds())/1e3, "us/best")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

package jobqueue

import (
	goruntime "runtime"
	"sync"
	"testing"
	"time"
	"weak"
)

// job appends its number to ran.
type job struct {
	n   int
	ran *[]int // used by one goroutine at a time
}

func (j job) Run() { *j.ran = append(*j.ran, j.n) }

// Jobs run once and in order, whichever jobs callers wait for. When all have run, no caller waits
// and no job is left.
func TestLane(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	for round := range rounds {
		x := new(Lanes)
		l := x.NewLane()
		var ran []int
		var stream sync.Mutex
		var wait sync.WaitGroup
		const jobs, makers = 40, 3
		next := 0
		for m := range makers {
			wait.Go(func() {
				for i := range jobs {
					stream.Lock()
					l.Submit(job{next, &ran}, (i+m+round)%3 > 0)
					next++
					at := l.Last()
					stream.Unlock()
					if (i*7+round)%5 < 2 {
						at.Wait()
						if !at.Passed() {
							t.Error("a job that was waited for has not run")
						}
					}
				}
			})
		}
		wait.Wait()
		l.Last().Wait()
		if len(ran) != jobs*makers {
			t.Fatalf("%d jobs ran, %d were submitted", len(ran), jobs*makers)
		}
		for i, n := range ran {
			if n != i {
				t.Fatalf("job %d ran as number %d", n, i)
			}
		}
		left := l.Queued() // first: the lane's lock is held until all is noted
		if _, busy := x.Last(); busy || left != (Moment{}) {
			t.Fatal("something is left to run")
		}
	}
}

// A job with start runs although no caller waits for it. One without start runs when a caller
// waits, and the earlier jobs run with it.
func TestLaneStarts(t *testing.T) {
	x := new(Lanes)
	l := x.NewLane()
	var ran []int
	l.Submit(job{0, &ran}, false)
	if l.Last().Passed() {
		t.Error("a job ran that nobody waits for")
	}
	l.Submit(job{1, &ran}, true)
	for at := l.Last(); !at.Passed(); {
		time.Sleep(time.Millisecond)
	}
	l.Submit(job{2, &ran}, false)
	l.Submit(job{3, &ran}, false)
	l.Last().Wait()
	if len(ran) != 4 {
		t.Errorf("jobs %v ran, of four", ran)
	}
}

// A caller can wait for a job that has a number but is not queued yet: another stream may already
// hold the memory that the job writes. The caller also runs the earlier jobs that are queued.
func TestLaneWaitsForReserved(t *testing.T) {
	x := new(Lanes)
	l := x.NewLane()
	var ran []int
	l.Submit(job{0, &ran}, false)
	at := After(l, l.Next+1)
	early := make(chan bool)
	go func() {
		at.Wait()
		early <- at.Passed()
	}()
	for !After(l, l.Next).Passed() { // the earlier job
		time.Sleep(time.Millisecond)
	}
	select {
	case <-early:
		t.Fatal("who waits went on before the job was queued")
	case <-time.After(20 * time.Millisecond):
	}
	l.Submit(job{1, &ran}, false)
	if !<-early {
		t.Error("who waits went on before the job had run")
	}
}

// gate is a job that runs until it is opened.
type gate struct{ begun, open chan struct{} }

func (g *gate) Run() {
	close(g.begun)
	<-g.open
}

// used is a job that is used again after it has run.
type used struct{ big *[1 << 10]byte }

func (u *used) Run() {}

// A lane that once had more jobs than fit into its first memory keeps none of those that have run:
// the jobs are used again, and the lane would keep their new memory alive.
func TestLaneKeepsNoJobs(t *testing.T) {
	x := new(Lanes)
	l := x.NewLane()
	for _, jobs := range []int{1, len(l.room), len(l.room) + 1, 3 * len(l.room), 10 * len(l.room)} {
		g := &gate{make(chan struct{}), make(chan struct{})}
		l.Submit(g, true)
		<-g.begun
		var submitted []weak.Pointer[used]
		for range jobs {
			u := &used{new([1 << 10]byte)}
			submitted = append(submitted, weak.Make(u))
			l.Submit(u, false)
		}
		close(g.open)
		l.Last().Wait()
		kept := 0
		for range 20 { // the goroutine that ran them may not have returned
			goruntime.GC()
			kept = 0
			for _, u := range submitted {
				if u.Value() != nil {
					kept++
				}
			}
			if kept == 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if kept > 0 {
			t.Errorf("%d of %d jobs that have run are kept", kept, jobs)
		}
	}
	goruntime.KeepAlive(l)
}

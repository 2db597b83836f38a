package apitest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
)

// A server program: 32 goroutines answer requests of several shapes on shared weights, one of which
// is set to new values meanwhile. Requests are abandoned, fail, move between goroutines, and run
// recordings. Run with -race; make hammer-server runs it for ten minutes.

// clerks is the number of goroutines of the server.
const clerks = 32

// stuck is longer than a request takes on a busy machine: a request that takes longer waits for
// ever.
const stuck = 3 * time.Minute

func TestServerHammer(t *testing.T) {
	srv := newServer(t)
	ctx, cancel := context.WithTimeout(context.Background(), hammerTime(t, 1))
	defer cancel()
	var wg sync.WaitGroup
	var all []*clerk
	for i := range clerks {
		c := &clerk{server: srv, rng: rand.New(rand.NewPCG(uint64(i), 14)), stream: srv.dev.NewStream(), done: map[string]int{}}
		all = append(all, c)
		wg.Go(func() {
			for ctx.Err() == nil {
				work := duties[c.rng.IntN(len(duties))]
				c.doing.Store(&doing{work.name, time.Now()})
				if err := work.do(c); err != nil {
					t.Errorf("clerk %d, %s: %v", i, work.name, err)
					cancel()
				}
				c.done[work.name]++
			}
			c.doing.Store(nil)
		})
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	watch(t, all, ended)
	srv.end(t, all)
}

// watch waits for the clerks, and prints where they are if one does not return.
func watch(t *testing.T, all []*clerk, ended chan struct{}) {
	t.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case now := <-tick.C:
			for i, c := range all {
				if d := c.doing.Load(); d != nil && now.Sub(d.since) > stuck {
					var stacks strings.Builder
					pprof.Lookup("goroutine").WriteTo(&stacks, 1)
					t.Fatalf("clerk %d has been at %q for %v\n%s", i, d.what, now.Sub(d.since), stacks.String())
				}
			}
		}
	}
}

// A server is the shared state of its clerks.
type server struct {
	dev     *millrace.Device
	layers  []*tensor // of a network: weight, bias, weight, bias
	asks    []ask
	rising  *tensor // 16 by 16, all elements equal a whole number that rises
	height  atomic.Int64
	rise    sync.Mutex
	jumping *tensor             // set to one of jumps, again and again
	jumps   [2]*tensor          // all 0, and a number whose exponential is infinite
	taped   *millrace.Recording // the network, a function of its input and its layers
	passing chan passed
}

// An ask is an input with the network's result for it alone.
type ask struct {
	rows int
	in   []float32
	want []float32
}

type clerk struct {
	*server
	rng    *rand.Rand
	stream *millrace.Stream
	done   map[string]int
	doing  atomic.Pointer[doing]
}

type doing struct {
	what  string
	since time.Time
}

const width, hidden = 24, 40

func network(x *tensor, layers []*tensor) *tensor {
	return x.MatMul(layers[0]).Add(layers[1]).Gelu().MatMul(layers[2]).Add(layers[3])
}

// newServer computes the answers on a separate device.
func newServer(t *testing.T) *server {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 14))
	some := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return v
	}
	shapes := [][]int{{width, hidden}, {hidden}, {hidden, width}, {width}}
	var numbers [][]float32
	for _, s := range shapes {
		n := 1
		for _, d := range s {
			n *= d
		}
		numbers = append(numbers, some(n))
	}
	put := func(dev *millrace.Device) (layers []*tensor) {
		for i, s := range shapes {
			layers = append(layers, millrace.FromSliceOn(dev, numbers[i], s...))
		}
		return layers
	}
	srv := &server{passing: make(chan passed, clerks/2)}
	alone := open(t, millrace.Options{Compile: millrace.CompileOff})
	layers := put(alone)
	for _, rows := range []int{1, 1, 2, 5, 8, 64, 200} {
		a := ask{rows: rows, in: some(rows * width)}
		want, err := millrace.Values[float32](network(millrace.FromSliceOn(alone, a.in, rows, width), layers))
		if err != nil {
			t.Fatal(err)
		}
		a.want = want
		srv.asks = append(srv.asks, a)
	}
	srv.dev = openSpec(t, "cpu:compile=background,threads=2")
	srv.layers = put(srv.dev)
	srv.rising = millrace.ZerosOn(srv.dev, millrace.Float32, 16, 16)
	srv.jumping = millrace.ZerosOn(srv.dev, millrace.Float32, 16, 16)
	srv.jumps = [2]*tensor{millrace.ZerosOn(srv.dev, millrace.Float32, 16, 16), millrace.FullOn(srv.dev, millrace.Float32, 200, 16, 16)}
	srv.taped = millrace.NewRecording(func(_ *millrace.Scope, in []*tensor) ([]*tensor, error) {
		y := network(in[0], in[1:])
		return []*tensor{y, y.Sum()}, nil
	})
	return srv
}

// end checks that every duty was done, that the weights are unchanged, and that nothing else is
// left.
func (srv *server) end(t *testing.T, all []*clerk) {
	t.Helper()
	total := map[string]int{}
	for _, c := range all {
		for what, n := range c.done {
			total[what] += n
		}
		if err := c.stream.Close(); err != nil {
			t.Errorf("closing a stream: %v", err)
		}
	}
	for _, d := range duties {
		if total[d.name] == 0 {
			t.Errorf("nobody did %q", d.name)
		}
	}
	t.Log(total)
	for len(srv.passing) > 0 {
		(<-srv.passing).x.Release()
	}
	c := &clerk{server: srv, rng: rand.New(rand.NewPCG(0, 15)), stream: srv.dev.NewStream()}
	if err := answer(c); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if err := wantAll(srv.rising, 256, float32(srv.height.Load())); err != nil {
		t.Errorf("what was set last: %v", err)
	}
	srv.taped.Release()
	srv.jumping.Release()
	if err := errors.Join(wantAll(srv.jumps[0], 256, 0), wantAll(srv.jumps[1], 256, 200)); err != nil {
		t.Errorf("what was set again and again: %v", err)
	}
	if err := srv.dev.Wait(); err != nil {
		t.Error(err)
	}
	kept := int64(0)
	for _, x := range append(srv.layers, srv.rising, srv.jumps[0], srv.jumps[1]) {
		kept += int64(4 * x.Len())
	}
	var live int64
	for range 50 { // the collector finds dropped tensors, and the next op notices
		goruntime.GC()
		millrace.FromSliceOn(srv.dev, []float32{1}).Release()
		if err := srv.dev.Sync(context.Background()); err != nil {
			t.Error(err)
		}
		if live = srv.dev.Stats().LiveBytes; live == kept {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d bytes are live, the weights have %d", live, kept)
}

// passed is a tensor that one clerk made and another reads.
type passed struct {
	x    *tensor
	want []float32
}

func sameBits(got, want []float32) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d values, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("value %d of %d is %v, alone it is %v", i, len(want), got[i], want[i])
		}
	}
	return nil
}

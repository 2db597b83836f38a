package stream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// TestHammer has ten goroutines record, read, release and hand over at once, first on one stream,
// then on ten, and checks every value. The variable HAMMER sets the total time; by default each
// part takes a second.
func TestHammer(t *testing.T) {
	long := time.Second
	if s := os.Getenv("HAMMER"); s != "" {
		var err error
		if long, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
		long /= 2
	}
	for _, streams := range []int{1, 10} {
		t.Run(fmt.Sprint(streams), func(t *testing.T) {
			h := newHammer(t, streams)
			stop := time.Now().Add(long)
			var all sync.WaitGroup
			for g := range 10 {
				all.Go(func() { h.work(g, h.streams[g%streams], stop) })
			}
			all.Wait()
			Release(h.weight)
			Release(h.cell)
			for i := range h.board {
				h.board[i].Store(nil)
			}
			for _, s := range h.streams {
				if err := s.Sync(context.Background()); err != nil {
					t.Error(err)
				}
			}
			waitFor(t, h.e.d, "in the end", func(s device.Stats) bool { return s.LiveBytes == 0 && s.PinnedBytes == 0 })
		})
	}
}

type hammer struct {
	e       *env
	streams []*Stream
	weight  *Value                     // 3, on the default stream
	cell    *Value                     // set again and again; both elements are equal
	board   [8]atomic.Pointer[posting] // tensors that other goroutines may use
}

type posting struct {
	v    *Value
	want float32
}

func newHammer(t *testing.T, streams int) *hammer {
	h := &hammer{e: open(t, func(o *device.Options) { o.QueueCap = 16 })}
	for range streams {
		h.streams = append(h.streams, h.e.d.NewStream())
	}
	h.weight = h.e.host(h.e.place(), ir.Shape{2}, 3, 3)
	h.cell = h.e.host(h.e.place(), ir.Shape{2}, 0, 0)
	return h
}

func (h *hammer) work(g int, s *Stream, stop time.Time) {
	rnd := rand.New(rand.NewPCG(uint64(g), 1))
	acc, sum := h.e.host(Place{S: s}, ir.Shape{2}, 0, 0), float32(0)
	for turn := 0; time.Now().Before(stop) && !h.e.t.Failed(); turn++ {
		sc := s.OpenScope()
		h.turn(rnd, s, sc)
		if rnd.IntN(2) == 0 {
			inner := sc.Inner()
			h.turn(rnd, s, inner)
			defer inner.Close() // overlaps scopes that are opened later
		}
		next := add(h.e, acc, 1)
		Set(acc, next)
		sum++
		if rnd.IntN(16) == 0 {
			h.check(acc, sum)
		}
		if g == 0 {
			n := float32(turn)
			Set(h.cell, h.e.host(h.e.place(), ir.Shape{2}, n, n))
		}
		if sum == 1000 {
			Set(acc, h.e.host(Place{S: s}, ir.Shape{2}, 0, 0))
			sum = 0
		}
		sc.Close()
	}
	h.check(acc, sum)
	Release(acc)
}

// turn computes a chain of ops on operands from any stream, and then uses its result in a random
// way.
func (h *hammer) turn(rnd *rand.Rand, s *Stream, sc *Scope) {
	e := h.e
	want := float32(rnd.IntN(8))
	y := e.host(Place{S: s, Scope: sc}, ir.Shape{2}, want, want)
	for range 1 + rnd.IntN(6) {
		old := y
		switch rnd.IntN(5) {
		case 0:
			y, want = e.op(ir.Add, t1(y), t1(h.weight)), want+3
		case 1:
			if p := h.board[rnd.IntN(len(h.board))].Load(); p != nil {
				y, want = e.op(ir.Sub, t1(y), t1(p.v)), want-p.want
			}
		case 2:
			y = e.op(ir.Add, t1(y), t1(e.op(ir.Sub, t1(h.cell), t1(h.cell))))
		case 3:
			y, want = mul(e, y, 0.5), want*0.5
		default:
			y, want = add(e, y, 2), want+2
		}
		if y != old && rnd.IntN(3) == 0 {
			Release(old)
		}
	}
	if want > 1000 || want < -1000 {
		return
	}
	switch rnd.IntN(6) {
	case 0:
		h.check(y, want)
	case 1:
		for out := sc; out != nil; out = out.outer {
			out.Keep(y)
		}
		h.board[rnd.IntN(len(h.board))].Store(&posting{y, want})
	case 2:
		to := new(Value)
		To(to, Place{S: h.streams[rnd.IntN(len(h.streams))]}, y)
		z := mul(e, to, 2)
		Release(to)
		h.check(z, 2*want)
		Release(z)
	case 3:
		if err := s.Sync(context.Background()); err != nil {
			e.t.Error(err)
		}
	}
}

// check does not end the test, because it runs in goroutines of the hammer.
func (h *hammer) check(v *Value, want float32) {
	got, err := h.e.read(v)
	if err != nil || got[0] != want || got[1] != want {
		h.e.t.Errorf("got %v %v, want %v", got, err, want)
	}
}

// A device may be closed while other goroutines use it. They get ErrClosed or the right values.
func TestCloseWhileInUse(t *testing.T) {
	for range 10 {
		e := open(t)
		w := e.host(e.place(), ir.Shape{2}, 3, 3)
		var all sync.WaitGroup
		for g := range 4 {
			all.Go(func() {
				s := e.d.NewStream()
				for i := 0; ; i++ {
					x := e.host(Place{S: s}, ir.Shape{2}, 1, 2)
					y := e.op(ir.Mul, t1(x), t1(w))
					to := new(Value)
					To(to, e.place(), y)
					got, err := e.read(add(e, to, float32(g)))
					if errors.Is(err, runtime.ErrClosed) {
						return
					}
					if err != nil || got[1] != 6+float32(g) {
						t.Errorf("got %v %v", got, err)
						return
					}
				}
			})
		}
		time.Sleep(5 * time.Millisecond)
		if err := e.d.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	}
}

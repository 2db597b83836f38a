package apitest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
)

// TestMixedStreams combines several streams, scopes, handles that are set, and recordings, call by
// call. The value of every handle, or its end, is known at each call; and no memory is left at the
// end.
func TestMixedStreams(t *testing.T) {
	n := 16
	if os.Getenv("MILLRACE_LONG") != "" {
		n = 1000
	}
	for seed := range n {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			if err := newMixed(t, uint64(seed)).run(200); err != nil {
				t.Error(err)
			}
		})
	}
}

type vec [3]float32

// mixedHandle is a tensor of three whole numbers, with its known state.
type mixedHandle struct {
	x     *tensor
	v     vec
	owner *mixedScope // nil: none
	gone  bool        // released, or computed from a released one
}

// mixedScope is a scope that a goroutine keeps open.
type mixedScope struct {
	*millrace.Scope
	outer     *mixedScope
	depth     int
	end, done chan struct{}
}

type mixed struct {
	rng     *rand.Rand
	dev     *millrace.Device
	streams []*millrace.Stream
	scopes  []*mixedScope
	all     []*mixedHandle
	rec     *millrace.Recording
	weights *mixedHandle // the recording reads it
}

func newMixed(t *testing.T, seed uint64) *mixed {
	rng := rand.New(rand.NewPCG(seed, 9))
	o := millrace.Options{Tier: millrace.TierInterpreter, Tune: millrace.TuneOff, Check: rng.IntN(3) == 0}
	o.QueueCap = max(0, rng.IntN(24)-12)
	o.PinnedLimit = max(0, int64(rng.IntN(100)-60))
	o.Explore = []millrace.ExploreMode{millrace.ExploreBackground, millrace.ExploreWait}[rng.IntN(2)]
	o.Fusion = []millrace.FusionMode{millrace.FusionOn, millrace.FusionGreedy, millrace.FusionOff}[rng.IntN(3)]
	m := &mixed{rng: rng, dev: open(t, o)}
	m.streams = []*millrace.Stream{m.dev.DefaultStream(), m.dev.NewStream(), m.dev.NewStream()}
	m.weights = m.create(m.streams[rng.IntN(3)], nil)
	m.rec = millrace.NewRecording(func(_ *millrace.Scope, in []*tensor) ([]*tensor, error) {
		y := m.weights.x.Sub(in[0]) // perhaps on another stream
		return []*tensor{in[0].Add(in[1].MulScalar(2)), in[1].Sub(y)}, nil
	})
	return m
}

func (m *mixed) create(p millrace.Place, sc *mixedScope) *mixedHandle {
	v := vec{float32(m.rng.IntN(9) - 4), float32(m.rng.IntN(9) - 4), float32(m.rng.IntN(9) - 4)}
	return m.add(millrace.FromSliceOn(p, v[:]), v, sc)
}

// add notes a new handle, which belongs to the innermost scope of its operands.
func (m *mixed) add(x *tensor, v vec, sc *mixedScope, from ...*mixedHandle) *mixedHandle {
	h := &mixedHandle{x: x, v: v, owner: sc}
	for _, f := range from {
		h.gone = h.gone || f.gone
		if f.owner != nil && (h.owner == nil || f.owner.depth > h.owner.depth) {
			h.owner = f.owner
		}
	}
	if slices.Max(v[:]) > 1000 || slices.Min(v[:]) < -1000 { // stay exact
		small := m.add(x.ClampScalar(-9, 9), zip(v, v, func(a, _ float32) float32 { return min(max(a, -9), 9) }), nil, h)
		x.Release()
		return small
	}
	m.all = append(m.all, h)
	return h
}

func zip(a, b vec, f func(x, y float32) float32) (v vec) {
	for i := range v {
		v[i] = f(a[i], b[i])
	}
	return v
}

// combine applies an op to two tensors.
func combine(op int, a, b *tensor, v, w vec) (*tensor, vec) {
	switch op {
	case 0:
		return a.Sub(b), zip(v, w, func(x, y float32) float32 { return x - y })
	case 1:
		return a.Neg().Maximum(b), zip(v, w, func(x, y float32) float32 { return max(-x, y) })
	case 2:
		return a.Sub(b.MaxKeep(0)), zip(v, w, func(x, _ float32) float32 { return x - slices.Max(w[:]) })
	case 3:
		return millrace.Concat(0, a.Flip(0), b).Slice(millrace.R(1, 4)), vec{v[1], v[0], w[0]}
	case 4:
		at := b.ClampScalar(0, 2).Cast(millrace.Int32)
		return a.Take(at, 0), zip(v, w, func(_, y float32) float32 { return v[int(min(max(y, 0), 2))] })
	}
	pairs := a.Reshape(3, 1).Add(b)
	return pairs.Sum(0), zip(v, w, func(_, y float32) float32 { return v[0] + v[1] + v[2] + 3*y })
}

// check reads a handle.
func (m *mixed) check(h *mixedHandle) error {
	got, err := millrace.Values[float32](h.x)
	switch {
	case h.gone && !errors.Is(err, millrace.ErrReleased):
		return fmt.Errorf("%v, %v of what was released", got, err)
	case !h.gone && (err != nil || vec(got) != h.v):
		return fmt.Errorf("%v, %v, want %v", got, err, h.v)
	}
	return nil
}

func (m *mixed) pick() *mixedHandle { // from the most recent ones
	for {
		h := m.all[max(0, len(m.all)-12)+m.rng.IntN(min(12, len(m.all)))]
		if !h.gone || m.rng.IntN(10) == 0 {
			return h
		}
		m.create(m.streams[m.rng.IntN(3)], nil)
	}
}

func (m *mixed) run(calls int) error {
	for range calls {
		a, b, s := m.pick(), m.pick(), m.streams[m.rng.IntN(3)]
		var err error
		switch m.rng.IntN(20) {
		default:
			x, v := combine(m.rng.IntN(6), a.x, b.x, a.v, b.v)
			m.add(x, v, nil, a, b)
		case 0, 1:
			err = m.check(a)
		case 2:
			if a != m.weights {
				a.x.Release()
				a.gone = true
			}
		case 3:
			if !a.gone && !b.gone && a != b && a != m.weights && b != m.weights && b.owner == nil {
				a.x.Set(b.x)
				a.v = b.v
				m.all = slices.DeleteFunc(m.all, func(h *mixedHandle) bool { return h == b }) // it follows a
			}
		case 4:
			m.all = append(m.all, &mixedHandle{x: a.x.To(s), v: a.v, gone: a.gone})
		case 5:
			m.open(s)
		case 6:
			if len(m.scopes) > 0 {
				m.close(m.rng.IntN(len(m.scopes)))
			}
		case 7:
			if sc := a.owner; sc != nil {
				sc.Keep(a.x)
				a.owner = sc.outer
			}
		case 8:
			if len(m.scopes) > 0 {
				sc := m.scopes[m.rng.IntN(len(m.scopes))]
				m.create(sc, sc)
			}
		case 9, 10:
			err = m.replay(s, a, b)
		}
		if err != nil {
			return err
		}
	}
	return m.finish()
}

// replay runs the recording, perhaps giving away the first argument.
func (m *mixed) replay(s *millrace.Stream, a, b *mixedHandle) error {
	if a.gone || b.gone {
		return nil
	}
	give := m.rng.IntN(2) == 0 && a != b && a != m.weights
	out, err := m.rec.RunWith(nil, millrace.RunOptions{On: s, Give: []bool{give, false}}, a.x, b.x)
	if err != nil {
		return err
	}
	a.gone = give
	m.add(out[0], zip(a.v, b.v, func(x, y float32) float32 { return x + 2*y }), nil)
	y := zip(m.weights.v, a.v, func(w, x float32) float32 { return w - x })
	m.add(out[1], zip(b.v, y, func(x, y float32) float32 { return x - y }), nil)
	if m.rng.IntN(6) == 0 {
		m.rec.Release()
	}
	return nil
}

// open opens a scope, perhaps within another one.
func (m *mixed) open(s *millrace.Stream) {
	sc := &mixedScope{depth: 1, end: make(chan struct{}), done: make(chan struct{})}
	within := s.Scope
	if len(m.scopes) > 0 && m.rng.IntN(2) == 0 {
		sc.outer = m.scopes[len(m.scopes)-1]
		sc.depth, within = sc.outer.depth+1, sc.outer.Scope.Scope
	}
	opened := make(chan struct{})
	go func() {
		defer close(sc.done)
		within(func(scope *millrace.Scope) error {
			sc.Scope = scope
			close(opened)
			<-sc.end
			return nil
		})
	}()
	<-opened
	m.scopes = append(m.scopes, sc)
}

// close ends a scope and those within it.
func (m *mixed) close(i int) {
	for _, sc := range slices.Backward(m.scopes[i:]) {
		close(sc.end)
		<-sc.done
		for _, h := range m.all {
			if h.owner == sc {
				h.owner, h.gone = nil, true
			}
		}
	}
	m.scopes = m.scopes[:i]
}

// finish reads and then releases everything.
func (m *mixed) finish() error {
	for _, h := range m.all {
		if err := m.check(h); err != nil {
			return err
		}
	}
	m.close(0)
	for _, h := range m.all {
		h.x.Release()
	}
	m.rec.Release()
	m.all = nil
	if err := m.dev.Sync(context.Background()); err != nil && !errors.Is(err, millrace.ErrReleased) {
		return err
	}
	var st millrace.Stats
	for range 50 { // intermediate results are left to the collector
		goruntime.GC()
		if st = m.dev.Stats(); st.LiveBytes == 0 && st.PinnedBytes == 0 {
			return m.dev.Wait()
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("%d bytes live, %d pinned", st.LiveBytes, st.PinnedBytes)
}

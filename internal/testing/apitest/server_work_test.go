package apitest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/millrace-go/millrace"
)

// duties are the tasks of a clerk, in any order.
var duties = []struct {
	name string
	do   func(c *clerk) error
}{
	{"answer", answer},
	{"answer in a scope", answerInScope},
	{"answer on a new stream", answerOnNewStream},
	{"give up", giveUp},
	{"given up before", givenUpBefore},
	{"set", set},
	{"use what is set", useWhatIsSet},
	{"jump", jump},
	{"use what jumps", useWhatJumps},
	{"run a recording", runRecording},
	{"pass on", passOn},
	{"take over", takeOver},
	{"go wrong", goWrong},
	{"look", look},
}

// request is a random ask, as a tensor.
func (c *clerk) request(p millrace.Place) (*tensor, ask) {
	a := c.asks[c.rng.IntN(len(c.asks))]
	return millrace.FromSliceOn(p, a.in, a.rows, width), a
}

// answered reads y, which must hold the answer.
func answered(y *tensor, a ask) error {
	got, err := millrace.Values[float32](y)
	if err != nil {
		return err
	}
	return sameBits(got, a.want)
}

// answer drops its tensors for the collector.
func answer(c *clerk) error {
	x, a := c.request(c.stream)
	return answered(network(x, c.layers), a)
}

func answerInScope(c *clerk) error {
	var kept, lost *tensor
	var a ask
	if err := c.stream.Scope(func(sc *millrace.Scope) error {
		var x *tensor
		x, a = c.request(sc)
		return sc.Scope(func(inner *millrace.Scope) error {
			y := network(x.To(inner), c.layers)
			lost = y.AddScalar(1)
			if c.rng.IntN(2) == 0 {
				if err := answered(y, a); err != nil {
					return err
				}
			}
			kept = sc.Keep(inner.Keep(y))
			return nil
		})
	}); err != nil {
		return err
	}
	defer kept.Release()
	if err := lost.Neg().Err(); !errors.Is(err, millrace.ErrReleased) {
		return fmt.Errorf("use after the scope: %v", err)
	}
	return answered(kept, a)
}

func answerOnNewStream(c *clerk) error {
	s := c.dev.NewStream()
	x, a := c.request(s)
	y := network(x, c.layers)
	x.Release()
	if c.rng.IntN(2) == 0 {
		if err := s.Close(); err != nil {
			return err
		}
	}
	return answered(y, a)
}

// within waits for y for a time that may be too short: it returns an error if the context ended
// first.
func within(ctx context.Context, s *millrace.Stream) error {
	err := s.Sync(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// giveUp abandons a request when its context ends, and the stream answers the next.
func giveUp(c *clerk) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.rng.IntN(2000))*time.Microsecond)
	defer cancel()
	if err := c.stream.Scope(func(sc *millrace.Scope) error {
		x, _ := c.request(sc)
		for range 1 + c.rng.IntN(20) {
			x = network(x, c.layers)
		}
		return within(ctx, c.stream)
	}); err != nil {
		return err
	}
	return answer(c)
}

// givenUpBefore waits with a context that has ended: recorded ops stay.
func givenUpBefore(c *clerk) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	x, a := c.request(c.stream)
	y := network(x, c.layers)
	if err := within(ctx, c.stream); err != nil {
		return err
	}
	return answered(y, a)
}

// set sets rising to the next value. One clerk does so at a time, like a program that updates
// weights; the others do not wait.
func set(c *clerk) error {
	c.rise.Lock()
	defer c.rise.Unlock()
	next := c.rising.AddScalar(1)
	c.height.Add(1)
	c.rising.Set(next)
	if c.rng.IntN(2) == 0 { // it stays usable
		if err := wantAll(next, 256, float32(c.height.Load())); err != nil {
			return fmt.Errorf("what was set: %w", err)
		}
	}
	next.Release()
	return nil
}

// useWhatIsSet computes a result from one value of rising; it must be a value that rising had
// meanwhile.
func useWhatIsSet(c *clerk) error {
	before := c.height.Load()
	x := millrace.OnesOn(c.stream, millrace.Float32, 3, 16)
	y := x.MatMul(c.rising)
	after := c.height.Load()
	got, err := millrace.Values[float32](y)
	if err != nil {
		return err
	}
	for i, v := range got {
		if v != got[0] {
			return fmt.Errorf("a mixture: element %d is %v, the first is %v", i, v, got[0])
		}
	}
	// The height is counted before Set: the value may be one behind it.
	if h := got[0] / 16; h < float32(before-1) || h > float32(after) {
		return fmt.Errorf("%v, while it rose from %d to %d", h, before, after)
	}
	return nil
}

// jump sets a handle to one of two tensors; others set it as well, and the tensors stay usable.
func jump(c *clerk) error {
	i := c.rng.IntN(2)
	c.jumping.Set(c.jumps[i])
	if c.rng.IntN(4) == 0 {
		return wantAll(c.jumps[i], 256, float32(200*i))
	}
	return nil
}

// useWhatJumps computes a result that is the same for both values, but not for a mixture: the
// exponential of 200-0 is infinite.
func useWhatJumps(c *clerk) error {
	x := c.jumping
	switch c.rng.IntN(3) {
	case 0:
		return wantAll(x.LogSoftmax(-1), 256, float32(-math.Log(16)))
	case 1:
		return wantAll(x.LayerNorm(nil, nil, 1e-5), 256, 0)
	}
	return wantAll(x.Softmax(-1), 256, 1.0/16)
}

// runRecording shares one recording with the others, and sometimes gives its argument away.
func runRecording(c *clerk) error {
	x, a := c.request(c.stream)
	give := make([]bool, 1+len(c.layers))
	give[0] = c.rng.IntN(2) == 0
	out, err := c.taped.RunWith(nil, millrace.RunOptions{On: c.stream, Give: give}, append([]*tensor{x}, c.layers...)...)
	if err != nil {
		return err
	}
	if err := answered(out[0], a); err != nil {
		return err
	}
	if c.rng.IntN(2) == 0 {
		out[0].Release()
		out[1].Release()
	}
	return nil
}

// passOn leaves a tensor to another clerk, read or not.
func passOn(c *clerk) error {
	x, a := c.request(c.stream)
	p := passed{network(x, c.layers), a.want}
	x.Release()
	select {
	case c.passing <- p:
		return nil
	default:
		return answered(p.x, a)
	}
}

// takeOver uses another clerk's tensor on its own stream.
func takeOver(c *clerk) error {
	select {
	case p := <-c.passing:
		got, err := millrace.Values[float32](millrace.OnesOn(c.stream, millrace.Float32).Mul(p.x))
		if err != nil {
			return err
		}
		p.x.Release()
		return sameBits(got, p.want)
	default:
		return nil
	}
}

// goWrong makes mistakes, which are reported and disturb nothing.
func goWrong(c *clerk) error {
	x, a := c.request(c.stream)
	bad := x.MatMul(c.layers[3].Reshape(2, width/2))
	if _, err := millrace.Values[float32](bad.Exp()); !errors.Is(err, millrace.ErrShape) {
		return fmt.Errorf("shapes that do not fit: %v", err)
	}
	if err := c.stream.Sync(context.Background()); err != nil {
		return fmt.Errorf("an error that was seen: %w", err)
	}
	return answered(network(x, c.layers), a)
}

// look reads the device's counters while others use it.
func look(c *clerk) error {
	st := c.dev.Stats()
	if st.LiveBytes < 0 || st.PinnedBytes < 0 || st.Ops < 0 { // none has run at first
		return fmt.Errorf("counters: %+v", st)
	}
	x, a := c.request(c.stream)
	y := network(x, c.layers)
	if y.Explain() == "" || y.String() == "" {
		return errors.New("nothing to see")
	}
	return answered(y, a)
}

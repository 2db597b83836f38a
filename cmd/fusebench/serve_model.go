package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/millrace-go/millrace"
	batches "github.com/millrace-go/millrace/serve"
)

// asksPerOffer is how many different requests of one size there are.
const asksPerOffer = 16

// An offer is one size of request.
type offer struct {
	variant string
	way     string // a key of answers
	batch   int
	asks    []*problem
}

// offersOf makes the requests of every variant, with their inputs.
func offersOf(c *config, as *arrays) ([]*offer, error) {
	if len(c.variants) == 0 {
		c.variants = serveSuite.variants(c.shape)
	}
	var offers []*offer
	for _, variant := range c.variants {
		if _, err := serveSuite.problem(variant, c.shape, as); err != nil {
			return nil, err
		}
		o := &offer{variant: variant}
		o.way, o.batch, _ = requestVariant(variant) // as the problem found
		for i := range asksPerOffer {
			o.asks = append(o.asks, request(o.batch, i, c.shape, as))
		}
		offers = append(offers, o)
	}
	as.fill()
	return offers, nil
}

// A service is an offer on a device. The weights are on its default stream, and every goroutine's
// stream reads them.
type service struct {
	*offer
	bench   *bench
	weights []*millrace.Tensor
	alone   [][]float32 // the result of each request when nothing else runs
	row     Row         // the fields that all its rows share
	exact   bool        // responses must have the bits of the results in alone

	recording *millrace.Recording                // what way recorded runs
	together  *batches.Batcher[float32, float32] // what way together runs; else nil
}

// newService computes every response alone and compares it with float64.
func newService(c *config, b *bench, o *offer) (*service, error) {
	v := &service{offer: o, bench: b, row: c.newRow(serveSuite.name, b.dev.Name(), "", b.mode), exact: b.dev.Name() == "cpu"}
	xs, err := b.inputs(o.asks[0])
	if err != nil {
		return nil, err
	}
	v.weights = xs[1:]
	if err := v.prepare(); err != nil {
		return nil, err
	}
	r, p := &v.row, o.asks[0]
	r.Shape, r.IOBytes, r.IntermediateBytes = p.shape, int64(p.bytes(c.dtype)), int64(p.intermediate*c.dtype.size())
	off := 0.0
	for _, p := range o.asks {
		out := make([]float32, p.oracle.elements())
		if err := v.eager(nil, b.dev.DefaultStream(), p, out); err != nil {
			return nil, err
		}
		v.alone = append(v.alone, out)
		off = math.Max(off, worst(p.oracle, out))
	}
	r.MaxAbsErr = number(off)
	return v, nil
}

// wrong compares a response with the one that was computed alone.
func (v *service) wrong(ask int, got []float32) error {
	for i, want := range v.alone[ask] {
		if g := got[i]; g != want && (v.exact || !(math.Abs(float64(g-want)) <= 1e-4*math.Max(1, math.Abs(float64(want))))) {
			return fmt.Errorf("%w: element %d of request %d is %v, but %v without other requests", errWrong, i, ask, g, want)
		}
	}
	return nil
}

var errWrong = errors.New("a response is wrong")

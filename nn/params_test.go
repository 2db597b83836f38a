package nn_test

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

func weight() *nn.Param { return nn.NewParam(millrace.Zeros(millrace.Float32, 1)) }

type pair struct{ Weight, Bias *nn.Param }

func newPair() pair { return pair{weight(), weight()} }

type base struct{ Scale *nn.Param }

type own struct{ p *nn.Param }

func (o own) State() []nn.Named { return []nn.Named{{"weight_ih_l0", o.p}} }

func names(ps []nn.Named) []string {
	var r []string
	for _, p := range ps {
		r = append(r, p.Name)
	}
	return r
}

// TestParamsNames checks the names for every way in which a module can hold a parameter.
func TestParamsNames(t *testing.T) {
	type loop struct {
		Self *loop
		W    *nn.Param
	}
	around := &loop{W: weight()}
	around.Self = around
	tied := weight()
	m := &struct {
		base
		Embed        *nn.Param `nn:"wte"`
		Skipped      *pair     `nn:"-"`
		Layers       []*pair
		hidden       *pair
		Two          [2]pair
		Heads        map[string]*pair
		Any          any
		InProjWeight *nn.Param
		Conv2d1      *nn.Param
		HTTPGate     *nn.Param
		Missing      *nn.Param
		Nothing      any
		Own          own
		Again        *nn.Param
		Inner        struct{ Deep pair }
		Around       *loop
		Client       *http.Client
		Ctx          context.Context
		Random       nn.Random
		Tensor       *millrace.Tensor
		Device       *millrace.Device
		data         any
		forward      nn.Module
	}{
		base: base{weight()}, Embed: tied, Skipped: &pair{weight(), nil}, Layers: []*pair{{weight(), weight()}, nil, {weight(), nil}},
		hidden: &pair{weight(), weight()}, Two: [2]pair{newPair(), newPair()},
		Heads: map[string]*pair{"b": {weight(), nil}, "a": {weight(), nil}}, Any: newPair(), InProjWeight: weight(),
		Conv2d1: weight(), HTTPGate: weight(), Own: own{weight()}, Again: tied, Inner: struct{ Deep pair }{newPair()}, Around: around,
		Client: http.DefaultClient, Ctx: context.Background(), Random: *nn.NewRandom(1),
		Tensor: millrace.Ones(millrace.Float32), Device: device(t), data: newPair(), forward: nn.NewLinear(1, 1, nn.NoBias()),
	}
	want := []string{"scale", "wte", "layers.0.weight", "layers.0.bias", "layers.2.weight", "hidden.weight", "hidden.bias",
		"two.0.weight", "two.0.bias", "two.1.weight", "two.1.bias", "heads.a.weight", "heads.b.weight", "any.weight", "any.bias",
		"in_proj_weight", "conv2d1", "http_gate", "own.weight_ih_l0", "inner.deep.weight", "inner.deep.bias", "around.w",
		"random.random.counter", "random.random.key", "forward.weight"}
	if got := names(nn.Params(m)); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if ps := nn.Params(m); ps[1].Param != tied {
		t.Error("the tied weight is another")
	}
	if got := nn.Params(nil); got != nil {
		t.Errorf("of nothing: %v", got)
	}
	if got := names(nn.Params([]any{newPair(), 1, "x", nil, weight()})); !slices.Equal(got, []string{"0.weight", "0.bias", "4"}) {
		t.Errorf("of a list: %q", got)
	}
}

package main

import (
	"math"
	"math/rand/v2"

	"github.com/millrace-go/millrace"
)

// attentionSuite is softmax(q·kᵀ/√d)·v of every head, plain or with a mask that hides later
// tokens from each token.
var attentionSuite = &Suite{
	name: "attention", about: "attention, plain, causal and filled", shape: shape{4, 8, 1024, 64}, sizes: "batch,heads,tokens,features",
	variants: always("plain", "causal", "filled"), modes: bothModes, problem: attentionProblem,
}

func attentionProblem(variant string, s shape, as *arrays) (*problem, error) {
	tokens, features := s[2], s[3]
	scores := shape{s[0], s[1], tokens, tokens}
	if err := fitsMemory(scores); err != nil {
		return nil, err
	}
	qs, ks, vs := as.normal("q", 1, s...), as.normal("k", 1, s...), as.normal("v", 1, s...)
	p := &problem{
		shape: s, inputs: []*array{qs, ks, vs}, intermediate: scores.len(),
		flops:  4 * float64(scores.len()) * float64(features),
		oracle: attentionOracle(qs, ks, vs, variant != "plain"),
	}
	switch variant {
	case "causal": // a mask is added to the scores
		p.inputs = append(p.inputs, as.of("mask", shape{tokens, tokens}, func(_ *rand.Rand, i int) float64 {
			if i%tokens > i/tokens {
				return math.Inf(-1)
			}
			return 0
		}))
	case "filled": // by MaskedFill
		p.inputs = append(p.inputs, as.mask("hides", shape{tokens, tokens}, func(i int) bool { return i%tokens > i/tokens }))
	}
	p.program = attention
	return p, nil
}

// attention computes the attention of q, k and v. A fourth tensor, if given, is a mask.
func attention(x []*millrace.Tensor) *millrace.Tensor {
	q, k, v := x[0], x[1], x[2]
	scores := q.MatMul(k.Permute(0, 1, 3, 2)).MulScalar(1 / math.Sqrt(float64(q.Dim(3))))
	if len(x) > 3 && x[3].DType() == millrace.Bool {
		scores = scores.MaskedFill(x[3], math.Inf(-1))
	} else if len(x) > 3 {
		scores = scores.Add(x[3])
	}
	return softmax(scores, 3).MatMul(v)
}

// attentionOracle computes one token of one head at a time.
func attentionOracle(q, k, v *array, causal bool) *oracle {
	tokens, features := q.shape[2], q.shape[3]
	scale := 1 / math.Sqrt(float64(features))
	return &oracle{units: q.shape[:3].len(), size: features, cost: float64(2 * tokens * features), unit: func(u int, out []float64) {
		seen, head := tokens, u/tokens*tokens*features
		if causal {
			seen = u%tokens + 1
		}
		scores, top := make([]float64, seen), math.Inf(-1)
		for t := range scores {
			for d := range features {
				scores[t] += float64(q.at(u*features+d) * k.at(head+t*features+d))
			}
			scores[t] *= scale
			top = max(top, scores[t])
		}
		sum := 0.0
		for t := range scores {
			scores[t] = math.Exp(scores[t] - top)
			sum += scores[t]
		}
		for t, e := range scores {
			for d := range out {
				out[d] += float64(e / sum * v.at(head+t*features+d))
			}
		}
	}}
}

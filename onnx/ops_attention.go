package onnx

import (
	"math"

	"github.com/millrace-go/millrace"
)

func init() { register(op{name: "Attention", since: 23, run: attention}) }

// heads splits the last dimension of a tensor of three: (batch, length, heads·size) becomes
// (batch, heads, length, size).
func (c *call) heads(x *tensor, name string) *tensor {
	if x.Rank() == 4 {
		return x
	}
	n := c.int(name, 0)
	if x.Rank() != 3 || n < 1 || x.Dim(2)%n != 0 {
		c.shapeFail("%d heads for shape %v", n, x.Shape())
		return x
	}
	return x.Reshape(x.Dim(0), x.Dim(1), n, x.Dim(2)/n).Permute(0, 2, 1, 3)
}

// attention follows the steps of the specification: scores, mask, soft cap, softmax, values. The
// last result is the scores after one of these steps.
func attention(c *call) []*value {
	flat := c.rank(0) == 3
	q, k, v := c.heads(c.t(0), "q_num_heads"), c.heads(c.t(1), "kv_num_heads"), c.heads(c.t(2), "kv_num_heads")
	past := 0
	if c.has(4) && c.has(5) {
		past = c.t(4).Dim(2)
		k, v = millrace.Concat(2, c.t(4), k), millrace.Concat(2, c.t(5), v)
	}
	if c.err != nil || q.Err() != nil || k.Err() != nil || v.Err() != nil {
		c.shapeFail("shapes %v, %v and %v", c.shape(0), c.shape(1), c.shape(2))
		return nil
	}
	keys, values := k, v
	if n := q.Dim(1); n != k.Dim(1) {
		if k.Dim(1) == 0 || n%k.Dim(1) != 0 || v.Dim(1) != k.Dim(1) {
			c.shapeFail("%d heads of queries, %d of keys", n, k.Dim(1))
			return nil
		}
		k, v = repeatHeads(k, n/k.Dim(1)), repeatHeads(v, n/v.Dim(1))
	}
	scale := math.Sqrt(c.float("scale", 1/math.Sqrt(float64(q.Dim(3)))))
	scores := q.MulScalar(scale).MatMul(k.MulScalar(scale).Transpose(2, 3))
	shown, mode := scores, c.int("qk_matmul_output_mode", 0)
	scores = c.masked(scores, past)
	if mode == 1 {
		shown = scores
	}
	if limit := c.float("softcap", 0); limit > 0 {
		scores = scores.DivScalar(limit).Tanh().MulScalar(limit)
	}
	if mode == 2 {
		shown = scores
	}
	dt := q.DType()
	part := scores.Cast(c.dtypeAttr("softmax_precision", dt)).Softmax(3).Cast(dt)
	if mode == 3 {
		shown = part
	}
	y := part.MatMul(v)
	if flat {
		y = y.Permute(0, 2, 1, 3).Reshape(c.shape(0)[0], c.shape(0)[1], -1)
	}
	return results(y, keys, values, shown)
}

// repeatHeads repeats each head n times.
func repeatHeads(x *tensor, n int) *tensor {
	d := x.Shape()
	return x.Unsqueeze(2).Expand(d[0], d[1], n, d[2], d[3]).Reshape(d[0], d[1]*n, d[2], d[3])
}

// masked adds the masks of an attention: the given one, the causal one and that of padding.
func (c *call) masked(scores *tensor, past int) *tensor {
	rows, columns := scores.Dim(2), scores.Dim(3)
	if c.has(3) {
		mask := c.t(3)
		if mask.Rank() == 0 {
			c.shapeFail("a mask without dimensions")
			return scores
		}
		if short := columns - mask.Dim(mask.Rank()-1); short > 0 {
			pads := make([]millrace.Padding, mask.Rank())
			pads[mask.Rank()-1].After = short
			if mask.DType() == millrace.Bool {
				mask = mask.Cast(millrace.Uint8).Pad(0, pads...).Cast(millrace.Bool)
			} else {
				mask = mask.Pad(negInf, pads...)
			}
		}
		if mask.DType() == millrace.Bool {
			scores = scores.MaskedFill(mask.Not(), negInf)
		} else {
			scores = scores.Add(mask)
		}
	}
	place := millrace.ArangeOn(c.f.r.place, millrace.Int64, 0, float64(columns), 1)
	if c.int("is_causal", 0) != 0 {
		row := millrace.ArangeOn(c.f.r.place, millrace.Int64, float64(past), float64(past+rows), 1)
		scores = scores.MaskedFill(place.Gt(row.Reshape(-1, 1)), negInf)
	}
	if c.has(6) {
		scores = scores.MaskedFill(place.Ge(c.t(6).Cast(millrace.Int64).Reshape(-1, 1, 1, 1)), negInf)
	}
	return scores
}

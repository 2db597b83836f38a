package codegen

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/runtime"
)

// TestCollapseKeepsMeaning interprets random launches before and after collapsing: broadcast and
// transposed inputs, an index operand, guarded and transposed outputs, reductions.
func TestCollapseKeepsMeaning(t *testing.T) {
	const body = `
in 0 : float32
in 1 : float32
index 2
out 3 : float32
%0 = load 0 : float32
%1 = load 1 : float32
%2 = indexlo 2 : uint32
%3 = convert %2 : float32
%4 = mul %0 %1 : float32
%5 = add %4 %3 : float32
`
	kernels := map[string]*Kernel{}
	for _, write := range []string{"store", "sum", "max"} {
		if write == "store" {
			kernels[write] = mustParse(t, body+"store 3 %5\n")
			continue
		}
		rows := strings.Replace(body, "out 3 : float32", "out 3 : float32 row", 1)
		kernels[write] = mustParse(t, rows+"%6 = "+write+" %5 : float32\nstore 3 %6\n")
	}
	rng := rand.New(rand.NewPCG(13, 14))
	data := make([]byte, 4*300)
	for i := range 300 {
		copy(data[4*i:], floats(float32(rng.NormFloat64())))
	}
	merged := 0
	for range 400 {
		rank := rng.IntN(5)
		l := runtime.Launch{Rank: rank, Kept: rank}
		write := "store"
		if rng.IntN(2) == 0 {
			write = []string{"sum", "max"}[rng.IntN(2)]
			l.Kept = rng.IntN(rank + 1)
		}
		k := kernels[write]
		for d := range rank {
			l.Dims[d] = 1 + rng.Int64N(4)
		}
		for range k.Operands {
			l.Args = append(l.Args, randomAccess(rng, l.Dims[:rank], 0.3))
		}
		// An output has stride 0 along reduced dims, and sometimes along others.
		l.Args[3] = randomAccess(rng, l.Dims[:l.Kept], 0.1)
		before := interpretLaunch(t, k, &l, data)
		was := l.Rank
		l.Collapse([]int{3})
		if l.Rank < was {
			merged++
		}
		if after := interpretLaunch(t, k, &l, data); string(after) != string(before) {
			t.Fatalf("%s over %v: collapsed to %v, %d kept, gives %x, want %x", write, l.Dims[:was], l.Dims[:l.Rank], l.Kept, after, before)
		}
	}
	if merged < 100 {
		t.Errorf("only %d launches were collapsed", merged)
	}
}

// randomAccess walks dense memory, sometimes transposed, with stride 0 along some dims.
func randomAccess(rng *rand.Rand, dims []int64, still float64) runtime.Access {
	var a runtime.Access
	order := make([]int, len(dims))
	for d := range order {
		order[d] = d
	}
	if rng.IntN(3) == 0 {
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	step := int64(1)
	for i := len(order) - 1; i >= 0; i-- {
		d := order[i]
		if rng.Float64() >= still {
			a.Stride[d] = step
			step *= dims[d]
		}
	}
	return a
}

func interpretLaunch(t *testing.T, k *Kernel, l *runtime.Launch, data []byte) []byte {
	t.Helper()
	out := make([]byte, len(data))
	args := []HostArg{{data, l.Args[0]}, {data, l.Args[1]}, {nil, l.Args[2]}, {out, l.Args[3]}}
	if err := Interpret(k, l.Dims[:l.Rank], l.Kept, args, l.Scalars); err != nil {
		t.Fatal(err)
	}
	return out
}

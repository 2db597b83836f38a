package cpu

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// dotKernels are contractions with all kinds of work around them. Operand 0 is the left side, 1
// the right one.
var dotKernels = map[string]string{
	"plain": `
in 0 : float32
in 1 : float32
out 2 : float32 row
%0 = load 0 : float32
%1 = load 1 : float32
%2 = dot %0 %1 : float32
store 2 %2
`,
	"around": `
in 0 : float32
in 1 : int32
in 2 : float32 row
in 3 : float32 row
out 4 : float32 row
out 5 : float32 row
scalar 0 : float32
%0 = load 0 : float32
%1 = load 1 : int32
%2 = scalar 0 : float32
%3 = mul %0 %2 : float32
%4 = exp %3 : float32
%5 = cast %1 : float32
%6 = dot %4 %5 : float32
%7 = load 2 : float32
%8 = add %6 %7 : float32
%9 = erf %8 : float32
%10 = mul %8 %9 : float32
%11 = load 3 : float32
%12 = add %10 %11 : float32
store 4 %12
store 5 %6
`,
	"half": `
in 0 : float16
in 1 : float16
in 2 : float16 row
out 3 : float16 row
%0 = load 0 : float16
%1 = load 1 : float16
%2 = dot %0 %1 : float16
%3 = load 2 : float16
%4 = add %2 %3 : float16
store 3 %4
`,
	"bytes": `
in 0 : int8
in 1 : int8
out 2 : int8 row
%0 = load 0 : int8
%1 = load 1 : int8
%2 = dot %0 %1 : int8
store 2 %2
`,
	"position": `
in 0 : float64
index 1
out 2 : float64 row
%0 = load 0 : float64
%1 = indexlo 1 : uint32
%2 = cast %1 : float64
%3 = dot %0 %2 : float64
store 2 %3
`,
}

// dotLaunch makes a launch over dims named by letters; those after a bar are reduced: "b i j | k".
// An operand lists the letters that it moves along, the last one fastest: "b i k". An operand of
// windows gives its strides: "i=2 k=1".
func dotLaunch(rng *rand.Rand, k *codegen.Kernel, dims string, size map[string]int64, operands ...string) *kernels.Launch {
	kept, reduced, _ := strings.Cut(dims, "|")
	names := append(strings.Fields(kept), strings.Fields(reduced)...)
	l := &kernels.Launch{Kept: len(strings.Fields(kept))}
	place := map[string]int{}
	for d, n := range names {
		place[n] = d
		l.Dims = append(l.Dims, size[n])
	}
	for i, text := range operands {
		o := k.Operands[i]
		a := codegen.HostArg{Access: runtime.Access{Offset: 3}}
		letters := strings.Fields(text)
		n := int64(1)
		for j := len(letters) - 1; j >= 0; j-- {
			name, stride, given := strings.Cut(letters[j], "=")
			if d := place[name]; given {
				fmt.Sscan(stride, &a.Stride[d])
				n += a.Stride[d] * max(size[name]-1, 0)
			} else {
				a.Stride[d] = n
				n *= max(size[name], 1)
			}
		}
		if o.Kind != codegen.Index {
			a.Data = make([]byte, (n+a.Offset)*int64(o.DT.Size()))
			for e := range n + a.Offset {
				v := kernels.Value(rng, o.DT)
				if o.DT.IsFloat() && rng.IntN(50) > 0 {
					v = ir.FloatBits(o.DT, rng.NormFloat64()) // few NaN: they hide other errors
				}
				ir.StoreBits(o.DT, a.Data[e*int64(o.DT.Size()):], v)
			}
		}
		l.Args = append(l.Args, a)
	}
	for _, dt := range k.Scalars {
		l.Scalars = append(l.Scalars, ir.FloatBits(dt, 0.37))
	}
	return l
}

// dotCases are layouts: dims, the left side, the right side, two operands of the results' side,
// and the outputs.
var dotCases = []struct {
	name, dims             string
	left, right            string
	bias, residual, result string
}{
	{"plain", "i j | k", "i k", "k j", "j", "i j", "i j"},
	{"right transposed", "i j | k", "i k", "j k", "j", "i j", "i j"},
	{"both transposed", "i j | k", "k i", "j k", "i", "j i", "i j"},
	{"result transposed", "i j | k", "i k", "k j", "j", "i j", "j i"},
	{"batch", "b i j | k", "b i k", "b j k", "j", "b i j", "b i j"},
	{"batch between", "i b j | k", "i b k", "b k j", "b j", "b i j", "i b j"},
	{"one right side", "b i j | k", "b i k", "k j", "j", "b i j", "b i j"},
	{"one left side", "b i j | k", "k i", "b k j", "j", "b i j", "b i j"},
	{"inner", "| k", "k", "k", "", "", ""},
	{"outer", "i j |", "i", "j", "j", "i j", "i j"},
	{"matrix by vector", "i | k", "i k", "k", "i", "", "i"},
	{"vector by matrix", "j | k", "k", "k j", "j", "", "j"},
	{"several of each", "i j h g | k p", "i h k p", "g k j p", "j g", "i j h g", "i j h g"},
	{"windows", "b j i h | c k p", "b=90 i=9 h=1 c=45 k=9 p=1", "j c k p", "j", "b j i h", "b j i h"},
	{"steps", "i j | k", "i=40 k=2", "j=61 k=3", "j", "i j", "i j"},
	{"guarded", "i j | k", "i k", "k j", "j", "i j", "j"},
	{"guarded batch", "b i j | k", "b i k", "k j", "j", "i j", "i j"},
	{"nobody moves", "i j z | k", "i k", "k j", "z", "i j", "i j z"},
}

var dotSizes = []map[string]int64{
	{"i": 5, "j": 7, "k": 9, "b": 3, "h": 4, "g": 2, "p": 3, "c": 2, "z": 2},
	{"i": 20, "j": 33, "k": 20, "b": 2, "h": 3, "g": 5, "p": 3, "c": 2, "z": 3},
	{"i": 1, "j": 70, "k": 19, "b": 2, "h": 1, "g": 1, "p": 1, "c": 1, "z": 1},
	{"i": 6, "j": 5, "k": 0, "b": 2, "h": 3, "g": 5, "p": 3, "c": 2, "z": 3},
	{"i": 0, "j": 5, "k": 4, "b": 2, "h": 3, "g": 5, "p": 3, "c": 2, "z": 3},
}

// TestDotKernels compares kernels with contractions with the oracle, in every layout and every way
// to run.
func TestDotKernels(t *testing.T) {
	for name, text := range dotKernels {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, ds := rowKernel(t, text), everyDevice(t)
			for _, c := range dotCases {
				if !thorough && name != "around" && c.name > "c" {
					continue
				}
				for _, size := range dotSizes {
					onEvery(t, ds, fmt.Sprintf("%s, %v", c.name, size), k, dotCase(k, c.dims, size, c.left, c.right, c.bias, c.residual, c.result))
				}
			}
		})
	}
}

func dotCase(k *codegen.Kernel, dims string, size map[string]int64, left, right, bias, residual, result string) *kernels.Launch {
	rng := rand.New(rand.NewPCG(21, uint64(len(k.Body))))
	operands := []string{left, right}
	for i, o := range k.Operands[2:] {
		switch {
		case o.Kind == codegen.Output:
			operands = append(operands, result)
		case i == 0:
			operands = append(operands, bias)
		default:
			operands = append(operands, residual)
		}
	}
	return dotLaunch(rng, k, dims, size, operands...)
}

// TestDotLarge is large enough for several panels, blocks of k and threads.
func TestDotLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("the oracle takes its time")
	}
	t.Parallel()
	for _, name := range []string{"plain", "around", "half"} {
		k, ds := rowKernel(t, dotKernels[name]), everyDevice(t)
		for _, size := range []map[string]int64{{"i": 50, "j": 130, "k": 300, "b": 2}, {"i": 7, "j": 600, "k": 70, "b": 1}, {"i": 300, "j": 3, "k": 270, "b": 1}} {
			for _, c := range []int{0, 1, 2, 3, 4} {
				c := dotCases[c]
				onEvery(t, ds, fmt.Sprintf("%s %s, %v", name, c.name, size), k, dotCase(k, c.dims, size, c.left, c.right, c.bias, c.residual, c.result))
			}
			if !thorough {
				break
			}
		}
	}
}

// TestDotOnePanel has results of few columns and many rows, over several blocks of k: each thread
// computes a part of the rows and packs the columns for itself.
func TestDotOnePanel(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plain", "around"} {
		k, ds := rowKernel(t, dotKernels[name]), everyDevice(t)
		for _, c := range []int{0, 1, 3} {
			c, size := dotCases[c], map[string]int64{"i": 151, "j": 19, "k": 530, "b": 1}
			onEvery(t, ds, fmt.Sprintf("%s %s, %v", name, c.name, size), k, dotCase(k, c.dims, size, c.left, c.right, c.bias, c.residual, c.result))
		}
	}
}

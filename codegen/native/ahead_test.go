//go:build linux || darwin

package native_test

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/codegen/native/arm64"
	"github.com/millrace-go/millrace/internal/machine"
)

// TestAhead checks that prefetching memory that is far away, or does not exist, changes nothing.
func TestAhead(t *testing.T) {
	k := parse(t, "in 0 : float32\nin 1 : uint8\nout 2 : float32\n%0 = load 0 : float32\n%1 = load 1 : uint8\n%2 = convert %1 : float32\n%3 = add %0 %2 : float32\nstore 2 %3\n")
	for _, isa := range runnable() {
		if isa == arm64.NEON {
			continue
		}
		v := all(k, codegen.Contiguous)
		v.Ahead = 1<<0 | 1<<1
		f, err := native.Compile(k, v, isa, true)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(f.Text(), "prefetcht1") {
			t.Errorf("%s: nothing is asked for", isa.Name)
		}
		rng := rand.New(rand.NewPCG(1, 7))
		for _, n := range []int{1, 16, 64, 65, 1000} {
			if err := check(t, rng, k, v, isa, 3, n); err != nil {
				t.Fatalf("%s, %d points: %v", isa.Name, n, err)
			}
			for _, far := range []int64{0, 64, 1 << 40, -1 << 62} {
				code, err := machine.Map(f.Code)
				if err != nil {
					t.Fatal(err)
				}
				words, p := frameFor(f)
				in, small, out := make([]float32, n), make([]uint8, n), make([]float32, n)
				for i := range in {
					in[i], small[i] = rng.Float32(), uint8(i)
				}
				words[native.FramePoints/8], words[native.FrameRows/8] = uint64(n), 1
				for i, at := range []unsafe.Pointer{unsafe.Pointer(&in[0]), unsafe.Pointer(&small[0]), unsafe.Pointer(&out[0])} {
					w := words[(native.FrameArgs+i*native.OperandBytes)/8:]
					w[native.Address/8], w[native.Step/8], w[native.Ahead/8] = uint64(uintptr(at)), uint64(k.Operands[i].DT.Size()), uint64(far)
				}
				machine.Call(code.Addr(0), p, machine.KeepMXCSR)
				runtime.KeepAlive([]any{in, small, out, words})
				for i := range out {
					if out[i] != in[i]+float32(small[i]) {
						t.Fatalf("%s, %d points, %d bytes ahead: point %d is %v", isa.Name, n, far, i, out[i])
					}
				}
				code.Free()
			}
		}
	}
}

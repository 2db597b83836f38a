package roofline

import (
	"bytes"
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/millrace-go/millrace/internal/machine"
)

func open(t *testing.T) *Roof {
	t.Helper()
	r, err := New()
	if machine.Level() == machine.None {
		if !errors.Is(err, ErrNone) {
			t.Fatalf("error %v without machine code", err)
		}
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func memory(n int) []byte {
	b := make([]byte, n+64)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & 63
	return b[skip : skip+n]
}

// TestCopy: the timed code copies everything but the incomplete granule.
func TestCopy(t *testing.T) {
	r := open(t)
	for _, n := range []int{r.Granule(), 3*r.Granule() + 5, 2*smallBytes + r.Granule()} {
		for _, past := range []bool{false, true} {
			dst, src := memory(n), memory(n)
			for i := range src {
				src[i] = byte(i*7 + i>>8)
			}
			if took := r.Copy(2, dst, src, past); took <= 0 {
				t.Errorf("%d bytes in %v", n, took)
			}
			whole := n / r.Granule() * r.Granule()
			if !bytes.Equal(dst[:whole], src[:whole]) || bytes.ContainsFunc(dst[whole:], func(r rune) bool { return r != 0 }) {
				t.Errorf("%d bytes, past the caches %v: not copied", n, past)
			}
			kept := bytes.Clone(src)
			r.Read(2, src)
			if !bytes.Equal(src, kept) {
				t.Errorf("reading %d bytes changed them", n)
			}
		}
	}
}

// TestMultiplyAdd: operations are counted in whole calls, float64 has half of them, and threads add
// up.
func TestMultiplyAdd(t *testing.T) {
	r := open(t)
	for _, size := range []int{4, 8} {
		for _, threads := range []int{1, 3} {
			ops, took := r.MultiplyAdd(threads, size, time.Microsecond)
			call := callLoops * float64(r.r.Flops) * 4 / float64(size)
			if calls := ops / call; calls < float64(threads) || calls != float64(int(calls)) || took <= 0 {
				t.Errorf("%d threads, %d bytes: %v operations in %v", threads, size, ops, took)
			}
		}
	}
}

package operror

import (
	"fmt"
	"os"
	goruntime "runtime"
	"testing"
)

// inlined is small enough for the compiler to put it into its callers.
func inlined(pcs []uintptr) int { return twice(pcs) }

func twice(pcs []uintptr) int { return goruntime.Callers(1, pcs) }

// TestFrames holds that program counters looked up one by one are the frames of
// the stack they are from, inlined calls included: so each needs to be looked up
// only once.
func TestFrames(t *testing.T) {
	var pcs [16]uintptr
	n := 0
	func() { n = inlined(pcs[:]) }()
	all := goruntime.CallersFrames(pcs[:n])
	for i := range n {
		f, _ := all.Next()
		for range 2 {
			got := frameOf(pcs[i])
			want := frame{ours: ours(f)}
			if !want.ours {
				want.line = fmt.Sprintf("%s:%d", f.File, f.Line)
			}
			if got != want {
				t.Errorf("frame %d, of %s: %+v, want %+v", i, f.Function, got, want)
			}
		}
	}
	_, file, line, _ := goruntime.Caller(0)
	if got, want := Caller(), fmt.Sprintf("%s:%d", file, line+1); got != want {
		t.Errorf("called from %s, want %s", got, want)
	}
}

// TestNotCallersExist finds entries of packages that were moved or removed.
func TestNotCallersExist(t *testing.T) {
	for pkg := range notCallers {
		if _, err := os.Stat("../../" + pkg); err != nil {
			t.Error(err)
		}
	}
}

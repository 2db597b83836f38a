package operror

import "testing"

//go:noinline
func nested(n int, f func()) {
	if n == 0 {
		f()
		return
	}
	nested(n-1, f)
}

// TestWithin counts calls that are further from the caller than one look at the stack goes.
func TestWithin(t *testing.T) {
	const name = modulePath + "/internal/operror.nested"
	for _, n := range []int{0, 1, 60, 61, 62, 63, 64, 65, 200} {
		nested(n, func() {
			if got := Within(name); got != n+1 {
				t.Errorf("%d calls, want %d", got, n+1)
			}
			if got := Within(modulePath + "/internal/operror.frameOf"); got != 0 {
				t.Errorf("%d calls of a function that was not called", got)
			}
		})
	}
	if got := Within(name); got != 0 {
		t.Errorf("%d calls behind its end", got)
	}
}

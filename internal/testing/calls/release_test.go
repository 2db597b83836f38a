package calls_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
)

// embeds gets a Release method from the compiler.
type embeds struct {
	n int
	*tensor
}

type releaser interface{ Release() }

// TestReleaseNamesItsLine checks that use after Release names the line of the program's call of
// Release, in whatever way it was called, and each call its own line. Release itself looks up no
// line, and keeps only few calls in memory.
func TestReleaseNamesItsLine(t *testing.T) {
	named := regexp.MustCompile(`released at (\S+)\)? \(at`)
	check := func(name string, x *tensor, line int) {
		t.Helper()
		_, file, _, _ := runtime.Caller(0)
		got := "nothing"
		err := x.Neg().Err()
		if m := named.FindStringSubmatch(fmt.Sprint(err)); m != nil {
			got = m[1]
		}
		if want := fmt.Sprintf("%s:%d", file, line); got != want {
			t.Errorf("%s: names %s, want %s: %v", name, filepath.Base(got), filepath.Base(want), err)
		}
	}
	make := func() *tensor { return millrace.FromSlice([]float32{1, 2, 3}) }

	x := make()
	x.Release()
	check("direct", x, line()-1)

	a, b := make(), make()
	for i, y := range []*tensor{a, b} {
		if i == 0 {
			y.Release()
		} else {
			y.Release()
		}
	}
	check("one of two lines", a, line()-5)
	check("the other", b, line()-4)

	x = make()
	func() {
		defer x.Release()
		x.Len()
	}()
	check("deferred", x, line()-3)

	x, y := make(), make()
	func() {
		for _, z := range []*tensor{x, y} {
			defer z.Release()
		}
	}()
	check("deferred in a loop", y, line()-3)

	x = make()
	var wg sync.WaitGroup
	wg.Go(func() {
		x.Release()
	})
	wg.Wait()
	check("in a goroutine", x, line()-3)

	x = make()
	releaseIt(embeds{1, x})
	check("by an embedding type", x, deepLine)

	x = make()
	release := x.Release
	release()
	check("a method value", x, line()-1)

	var many []*tensor
	for range 3 { // remembered, forgotten, remembered
		for range 200 {
			x = make()
			deepRelease(x, len(many)%40)
			many = append(many, x)
		}
	}
	for _, x := range many {
		check("at many depths", x, deepLine)
	}
}

var deepLine int

//go:noinline
func releaseIt(r releaser) {
	r.Release() // through a wrapper that the compiler makes
	deepLine = line() - 1
}

//go:noinline
func deepRelease(x *tensor, n int) {
	if n == 0 {
		x.Release()
		deepLine = line() - 1
		return
	}
	deepRelease(x, n-1)
}

package gomlxbackend

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"
)

// goAgain gives the name back to GoMLX's own backend, as a program would.
func goAgain(t *testing.T) {
	t.Cleanup(func() { compute.Register("go", gobackend.New) })
}

// opened is the backend that a request gives.
func opened(t *testing.T, request string) compute.Backend {
	t.Helper()
	b, err := compute.NewWithConfig(request)
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	t.Cleanup(b.Finalize)
	return b
}

// A program that asks for "go" gets Millrace with the config of Replace, or with its
// own, and GoMLX's own backend after that has been registered again.
func TestReplace(t *testing.T) {
	goAgain(t)
	if b, ok := opened(t, "go").(*Backend); ok {
		t.Fatalf("go is %s without having been replaced", b)
	}
	if err := Replace("go", "cpu,threads=1"); err != nil {
		t.Fatal(err)
	}
	for request, want := range map[string]string{"go": "1 thread", "go:cpu,threads=2": "2 threads"} {
		b, ok := opened(t, request).(*Backend)
		if !ok || b.Name() != Name || !strings.Contains(b.Description(), want) {
			t.Errorf("%q opened %v, want Millrace with %s", request, b.Description(), want)
		}
	}
	if !slices.Contains(compute.List(), Name) {
		t.Errorf("%q is no longer registered beside it: %v", Name, compute.List())
	}
	compute.Register("go", gobackend.New)
	if b, ok := opened(t, "go").(*Backend); ok {
		t.Errorf("go is %s after its own backend registered again", b)
	}
}

// Replace changes nothing where it returns an error, and says what is wrong.
func TestReplaceBadInput(t *testing.T) {
	goAgain(t)
	for _, c := range []struct {
		name, config string
		want         []string
	}{
		{"og", "", []string{`"og"`, "not registered", "import", "go"}},
		{"", "", []string{`""`, "not registered"}},
		{"go:cpu", "", []string{`"go:cpu"`, "not registered"}},
		{Name, "", []string{Name, "itself"}},
		{"go", "thread=2", []string{`"go"`, "thread", "threads"}},
	} {
		before := compute.List()
		err := Replace(c.name, c.config)
		if err == nil {
			t.Errorf("Replace(%q, %q) is no error", c.name, c.config)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("Replace(%q, %q): %v, which does not name %s", c.name, c.config, err, want)
			}
		}
		if after := compute.List(); len(after) != len(before) {
			t.Errorf("Replace(%q, %q) failed and registered something: %v, then %v", c.name, c.config, before, after)
		}
	}
	if b, ok := opened(t, "go").(*Backend); ok {
		t.Errorf("go is %s after errors only", b)
	}
	if err := Replace("go", ""); err != nil {
		t.Fatal(err)
	}
	// What the replaced backend would have understood is not ignored.
	_, err := compute.NewWithConfig("go:parallelism=2")
	if err == nil || !strings.Contains(err.Error(), "parallelism") || !strings.Contains(err.Error(), `"go"`) {
		t.Errorf("go:parallelism=2: %v, which does not say what is wrong with it", err)
	}
}

// A program that names no backend gets the one that registered first, and not Millrace, unless
// the environment or compute.DefaultConfig names it.
func TestDefaultBackend(t *testing.T) {
	t.Setenv(compute.ConfigEnvVar, "") // restored afterwards
	if err := os.Unsetenv(compute.ConfigEnvVar); err != nil {
		t.Fatal(err)
	}
	is := func() bool {
		b := compute.MustNew()
		defer b.Finalize()
		_, ok := b.(*Backend)
		return ok
	}
	if is() {
		t.Error("Millrace is the default though nobody asked for it")
	}
	old := compute.DefaultConfig
	t.Cleanup(func() { compute.DefaultConfig = old })
	if compute.DefaultConfig = Name; !is() {
		t.Error("compute.DefaultConfig does not count")
	}
	compute.DefaultConfig = old
	if t.Setenv(compute.ConfigEnvVar, Name); !is() {
		t.Error("the environment does not count")
	}
}

//go:build cgo && unix

package ccode

import (
	"errors"
	"os"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen/cgo"
)

// TestLoadRefuses checks that load refuses an object without the kernel, or one that fails the
// probe.
func TestLoadRefuses(t *testing.T) {
	needCompiler(t)
	tools, err := newToolchain(t.Context(), &Config{Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	defer tools.remove()
	for source, want := range map[string]error{
		"int mr_probe(void) { return 1; } void mr_kernel(void) {}": errProbe,
		"int mr_probe(void) { return 0; }":                         nil,
		"void mr_kernel(void) {}":                                  nil,
	} {
		path, err := tools.compile(t.Context(), source)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err = load(path, "mr_kernel"); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// TestLoadBytes checks that an object in memory loads if nothing can be executed from the
// directory, and that no earlier object is taken for the new one.
func TestLoadBytes(t *testing.T) {
	needCompiler(t)
	if goruntime.GOOS != "linux" {
		t.Skip("only Linux has files without a name")
	}
	tools, err := newToolchain(t.Context(), &Config{Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	defer tools.remove()
	var seen []any
	for _, source := range []string{"int one;", "int two;"} { // neither is taken for the other
		path, err := tools.compile(t.Context(), source+cgo.ABI+cgo.Probe(probeSymbol)+" void mr_kernel(void) {}")
		if err != nil {
			t.Fatal(err)
		}
		object, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		handle, funcs, err := loadBytes(object, "mr_kernel")
		if err != nil || len(funcs) != 1 {
			t.Fatal(err, funcs)
		}
		defer unload(handle)
		seen = append(seen, handle)
	}
	if seen[0] == seen[1] {
		t.Error("two objects are one")
	}
}

// TestObjectKeys checks that keys differ by compiler, flags and text.
func TestObjectKeys(t *testing.T) {
	needCompiler(t)
	seen := map[string]bool{}
	add := func(what string) {
		tools, err := newToolchain(t.Context(), &Config{Limits: limits})
		if err != nil {
			t.Fatal(err)
		}
		defer tools.remove()
		for _, source := range []string{"int a;", "int b;"} {
			key := tools.objectKey(source)
			if seen[key] {
				t.Errorf("%s has the key of another: %s", what, key)
			}
			seen[key] = true
		}
		if !strings.Contains(tools.id, Processor()) || !strings.Contains(Processor(), Describe()) {
			t.Errorf("no processor in %s", tools.id)
		}
	}
	add("the compiler")
	cc := Find()
	fakeCompiler(t, `exec `+cc+` "$@"`)
	add("a wrapper")
	t.Setenv("CC", cc+" -O1")
	add("flags of the user's")
}

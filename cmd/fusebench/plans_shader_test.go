package main

import (
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/codegen/wgsl"
)

// TestPlansShaders: shaders are listed and shown as text; one that its key does not
// print is damaged, one of another version's printer foreign.
func TestPlansShaders(t *testing.T) {
	k, err := codegen.Parse("in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\n%1 = neg %0 : float32\nstore 1 %1\n")
	if err != nil {
		t.Fatal(err)
	}
	v := shader.Dense(k, 4)
	source, err := shader.Print(wgsl.Dialect, k, &v)
	if err != nil {
		t.Fatal(err)
	}
	scope, key := "device=webgpu fingerprint "+wgsl.Dialect.Printer()+" an adapter\n", shader.NoteKey(k, &v)
	for _, c := range []struct{ key, text, state, why string }{
		{scope + key, source, stateOK, ""},
		{scope + key, source + "// \n", stateDamaged, "the text is not that of its kernel and variant"},
		{strings.Replace(scope, wgsl.Dialect.Printer(), "wgsl 0", 1) + key, source, stateForeign, "printed by another version"},
		{scope + "more\n" + key, source, stateDamaged, "no key of a shader"},
	} {
		dir := t.TempDir()
		cacheWith(t, dir, "wgsl", c.key, c.text)
		rows := listed(t, "-kinds", "wgsl", dir)
		if len(rows) != 1 || rows[0].Device != "webgpu" || rows[0].State != c.state || !strings.Contains(rows[0].Why, c.why) {
			t.Fatalf("%+v, want %s: %s", rows, c.state, c.why)
		}
		code, out, errs := fusebench("plans", "show", "-from", dir, rows[0].Name)
		if code != 0 || errs != "" || !strings.Contains(out, "@compute") {
			t.Errorf("exit %d, %q\n%s", code, errs, out)
		}
	}
}

package main

import (
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/glsl"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/codegen/spirv"
	"github.com/millrace-go/millrace/codegen/wgsl"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// TestPlansShaders checks that shaders are listed and shown as text. A shader that does not match
// its key is damaged, and one from another version's printer is foreign.
func TestPlansShaders(t *testing.T) {
	k, err := codegen.Parse("in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\n%1 = neg %0 : float32\nstore 1 %1\n")
	if err != nil {
		t.Fatal(err)
	}
	v := shader.Dense(k, 4)
	for device, d := range map[string]*shader.Dialect{"webgpu": wgsl.Dialect, "opengl": glsl.Dialect, "vulkan": spirv.Dialect} {
		plansShaders(t, device, d, k, &v)
	}
}

func plansShaders(t *testing.T, device string, d *shader.Dialect, k *codegen.Kernel, v *shader.Variant) {
	source, err := shader.Print(d, k, v)
	if err != nil {
		t.Fatal(err)
	}
	sort := shader.SortShader{Step: shader.SortKeys, DT: ir.Int32, Descending: true}
	sorts, _, err := sort.Print(d)
	if err != nil {
		t.Fatal(err)
	}
	scope, key := "device="+device+" fingerprint "+d.Printer()+" an adapter\n", shader.NoteKey(k, v)
	for _, c := range []struct{ key, text, state, why string }{
		{scope + key, source, stateOK, ""},
		{scope + key, source + "// \n", stateDamaged, "the text is not that of its kernel and variant"},
		{strings.Replace(scope, d.Printer(), d.Name+" 0", 1) + key, source, stateForeign, "another version printed it"},
		{strings.Replace(scope, d.Printer(), "hlsl 1", 1) + key, source, stateForeign, "its language is unknown to this version"},
		{scope + sort.NoteKey(), sorts, stateOK, ""},
		{scope + sort.NoteKey(), source, stateDamaged, "the text is not that"},
		{scope + "more\n" + key, source, stateDamaged, "the key is not that of a shader"},
	} {
		dir := t.TempDir()
		cacheWith(t, dir, runtime.KindShader, c.key, c.text)
		rows := listed(t, "-kinds", runtime.KindShader, dir)
		if len(rows) != 1 || rows[0].Device != device || rows[0].State != c.state || !strings.Contains(rows[0].Why, c.why) {
			t.Fatalf("%+v, want %s: %s", rows, c.state, c.why)
		}
		code, out, errs := fusebench("plans", "show", "-from", dir, rows[0].Name)
		if code != 0 || errs != "" || !strings.Contains(out, strings.TrimSpace(c.text)) {
			t.Errorf("exit %d, %q\n%s", code, errs, out)
		}
	}
}

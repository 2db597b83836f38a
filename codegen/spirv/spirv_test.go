package spirv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/testing/golden"
	"github.com/millrace-go/millrace/internal/testing/shadertest"
)

var allFloats = Floats{KeepNaN: true, KeepDenormals: true, Nearest: true}

// tool finds a program of Debian's spirv-tools. Without it the test is skipped; CI requires it.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("no %s (Debian: spirv-tools)", name)
	}
	return path
}

// file writes a module to a file.
func file(t *testing.T, dir, name string, words []uint32) string {
	t.Helper()
	var data []byte
	for _, w := range words {
		data = binary.LittleEndian.AppendUint32(data, w)
	}
	path := filepath.Join(dir, name+".spv")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// validate runs the reference validator on a module.
func validate(t *testing.T, validator, path string) error {
	t.Helper()
	out, err := exec.Command(validator, "--target-env", "vulkan1.2", path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// TestGolden checks the text of some shaders, and of all ops. The cases are those of WGSL. Each text
// compiles, with and without float controls.
func TestGolden(t *testing.T) {
	for i, text := range shadertest.Golden(t, Dialect, "testdata/shaders") {
		for _, f := range []Floats{{}, allFloats} {
			if _, err := Compile(text, f, 0); text != "" && err != nil {
				t.Errorf("shader %d: %v\n%s", i, err, text)
			}
		}
	}
}

// TestValid checks that the reference validator accepts every shader, and rejects a damaged one.
func TestValid(t *testing.T) {
	validator, dir := tool(t, "spirv-val"), t.TempDir()
	knows := knowsMatrices(t, validator)
	var last []uint32
	for i, text := range shadertest.Golden(t, Dialect, "testdata/shaders") {
		if text == "" {
			continue
		}
		for _, push := range []int{0, 1 << 16} {
			mod, err := Compile(text, allFloats, push)
			if err != nil {
				t.Fatalf("shader %d: %v", i, err)
			}
			if HasMatrices(mod.Words) != (mod.Matrices != Matrices{}) {
				t.Errorf("shader %d: HasMatrices is wrong", i)
			}
			if mod.Matrices != (Matrices{}) && !knows {
				continue
			}
			if err := validate(t, validator, file(t, dir, fmt.Sprint(i), mod.Words)); err != nil {
				t.Errorf("shader %d, push constants of %d bytes: %v\n%s", i, push, err, text)
			}
			last = mod.Words
		}
	}
	last[len(last)-1]-- // another instruction than OpFunctionEnd
	if validate(t, validator, file(t, dir, "bad", last)) == nil {
		t.Error("the validator takes a damaged module")
	}
}

// TestModules compares modules, disassembled, and errors with golden texts.
func TestModules(t *testing.T) {
	disassembler, validator, dir := tool(t, "spirv-dis"), tool(t, "spirv-val"), t.TempDir()
	golden.Run(t, "testdata/modules", map[string]golden.Handler{"compile": func(t *testing.T, c *golden.Case) string {
		f, push := Floats{}, 0
		for _, a := range c.Args {
			switch a {
			case "push":
				push = 32
			default:
				f = allFloats
			}
		}
		mod, err := Compile(c.Input, f, push)
		if err != nil {
			return "error: " + err.Error()
		}
		path := file(t, dir, fmt.Sprint(c.Line), mod.Words)
		if err := validate(t, validator, path); err != nil {
			t.Error(err)
		}
		out, err := exec.Command(disassembler, "--no-header", "--no-color", path).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		pushed := ""
		if mod.Pushed > 0 {
			pushed = fmt.Sprintf(", %d bytes of push constants", mod.Pushed)
		}
		return fmt.Sprintf("group %d, shared %d, bindings %v%s\n%s", mod.Group, mod.Shared, mod.Bindings, pushed, out)
	}})
}

// TestDeep checks that nesting ends in an error and not in an overflow of the stack.
func TestDeep(t *testing.T) {
	for _, nested := range []string{
		strings.Repeat("(", 1<<20), strings.Repeat("-", 1<<20), strings.Repeat("abs(", 1<<20),
		"1.0; " + strings.Repeat("{", 1<<20), "1.0; " + strings.Repeat("if (true) {", 1<<20),
	} {
		_, err := Compile("main invocations 1 {\n\tlet f32 x = "+nested, Floats{}, 0)
		var e *Error
		if !errors.As(err, &e) || e.Line != 2 || !strings.Contains(e.What, "nested deeper") {
			t.Errorf("%.40s: %v", nested, err)
		}
	}
}

// FuzzCompile checks that any text compiles or is an *Error that names one of its lines.
func FuzzCompile(f *testing.F) {
	for _, name := range []string{"testdata/modules/modules.txt", "testdata/modules/errors.txt", matrixTexts} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for c := range strings.SplitSeq(string(data), "compile") {
			text, _, _ := strings.Cut(c, "----")
			_, text, _ = strings.Cut(text, "\n")
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		mod, err := Compile(text, allFloats, 128)
		var e *Error
		switch {
		case err == nil && (len(mod.Words) < 5 || mod.Group == 0):
			t.Errorf("no module of %q", text)
		case err != nil && (!errors.As(err, &e) || e.Line < 1 || e.Line > strings.Count(text, "\n")+1):
			t.Errorf("%v of %q", err, text)
		}
	})
}

// BenchmarkCompile compiles the shaders of the golden files.
func BenchmarkCompile(b *testing.B) {
	data, err := os.ReadFile("testdata/modules/modules.txt")
	if err != nil {
		b.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "compile\n")
	text, _, _ = strings.Cut(text, "----")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for range b.N {
		if _, err := Compile(text, allFloats, 128); err != nil {
			b.Fatal(err)
		}
	}
}

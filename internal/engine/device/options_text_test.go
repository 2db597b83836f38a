package device

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/runtime"
)

func TestOptionsText(t *testing.T) {
	for _, c := range []struct {
		text string
		want Options
	}{
		{"", Options{}},
		{"cpu", Options{Device: "cpu"}},
		{"cpu:threads=2,compile=wait", Options{Device: "cpu", Threads: 2, Compile: runtime.CompileWait}},
		{"cpu:compile=native,tier=1", Options{Device: "cpu", Compile: runtime.CompileNative, Tier: TierCompiled}},
		{"cpu:compile=c", Options{Device: "cpu", Compile: runtime.CompileC}},
		{":tier=0,fusion=off", Options{Tier: TierInterpreter, Fusion: FusionOff}},
		{"webgpu:adapter=llvmpipe (LLVM 15, 256 bits)", Options{}},
		{"webgpu:isolate=on", Options{Device: "webgpu", Isolate: true}},
		{"opengl:subgroups=off", Options{Device: "opengl", Subgroups: runtime.SubgroupsOff}},
		{"vulkan:narrow=off", Options{Device: "vulkan", Narrow: runtime.NarrowOff}},
		{"vulkan:matrices=off", Options{Device: "vulkan", Matrices: runtime.MatricesOff}},
		{"vulkan:precision=bf16x3", Options{Device: "vulkan", Precision: runtime.PrecisionBF16x3}},
		{"vulkan:precision=full", Options{Device: "vulkan"}},
		{`webgpu:adapter="llvmpipe (LLVM 15, 256 bits)"`, Options{Device: "webgpu", Adapter: "llvmpipe (LLVM 15, 256 bits)"}},
		{"cpu: memory=512MiB , check", Options{Device: "cpu", MemoryLimit: 512 << 20, Check: true}},
		{"cpu:memory=1GiB,pinned=1000,lines=false", Options{Device: "cpu", MemoryLimit: 1 << 30, PinnedLimit: 1000}},
		{"cpu:,queue=1,", Options{Device: "cpu", QueueCap: 1}},
	} {
		got, err := ParseOptions(c.text)
		if reflect.DeepEqual(c.want, Options{}) && c.text != "" {
			if err == nil {
				t.Errorf("%q: no error, got %v", c.text, got)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: got %+v, %v", c.text, got, err)
		}
	}
}

// TestOptionsErrors checks that one error lists every problem, and names the valid keys for an
// unknown one.
func TestOptionsErrors(t *testing.T) {
	_, err := ParseOptions("cpu:thread=2,compile=maybe,queue=x,memory=-1,lines,lines,memory=1")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`"thread"`, "adapter, isolate, subgroups, narrow, matrices, precision, threads, compile", `compile="maybe"`, "background, wait, off, native, c", `queue="x"`, "MemoryLimit is negative", `"lines" is given twice`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %s:\n%v", want, err)
		}
	}
	if _, err := ParseOptions("cpu:tier=1,compile=off"); err == nil {
		t.Error("tier 1 without code was accepted")
	}
	if _, err := ParseOptions("cpu:memory=9999999999GiB"); err == nil {
		t.Error("overflowing size was accepted")
	}
}

// TestOptionsHelp checks that every key has a line with its effect and its values.
func TestOptionsHelp(t *testing.T) {
	lines := strings.Split(OptionsHelp(), "\n")
	if len(lines) != len(options) {
		t.Fatalf("%d lines for %d keys", len(lines), len(options))
	}
	for i, o := range options {
		if o.what == "" || !strings.HasPrefix(lines[i], "  "+o.key+" ") || !strings.HasSuffix(lines[i], " "+o.what+" ("+o.want+")") {
			t.Errorf("%s: %q", o.key, lines[i])
		}
	}
}

// TestOptionsRoundTrip checks that the text form keeps every field but Trace, whatever its value.
func TestOptionsRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var o Options
		v := reflect.ValueOf(&o).Elem()
		for i := range v.NumField() {
			if rng.IntN(2) == 0 {
				continue
			}
			switch f := v.Field(i); f.Kind() {
			case reflect.Int, reflect.Int64:
				f.SetInt(rng.Int64N(1<<40) >> rng.IntN(40))
			case reflect.Uint8:
				f.SetUint(rng.Uint64N(3))
			case reflect.Bool:
				f.SetBool(true)
			case reflect.String:
				if v.Type().Field(i).Name == "Device" {
					f.SetString("cpu")
				} else {
					f.SetString([]string{"a", " b ", `c,"d"=\`, "e:f", "\n"}[rng.IntN(5)])
				}
			case reflect.Pointer: // Trace
			default:
				t.Fatalf("field %s: a kind this test does not know", v.Type().Field(i).Name)
			}
		}
		if o.Validate() != nil {
			continue
		}
		got, err := ParseOptions(o.String())
		if err != nil || got != o {
			t.Fatalf("%q: got %+v, want %+v: %v", o.String(), got, o, err)
		}
	}
}

// TestForbid checks that a forbidden way is not used, that a way forbidden by the program stays
// forbidden, and that a mode that waits still waits.
func TestForbid(t *testing.T) {
	for _, c := range []struct {
		text              string
		compilers, native bool
		want              string
	}{
		{"", false, false, ""}, {"", true, true, ":compile=off"}, {"", true, false, ":compile=native"}, {"", false, true, ":compile=c"},
		{":compile=off", true, false, ":compile=off"}, {":compile=off", false, true, ":compile=off"}, {":compile=off", false, false, ":compile=off"},
		{":compile=native", true, false, ":compile=native"}, {":compile=native", false, true, ":compile=off"},
		{":compile=c", false, true, ":compile=c"}, {":compile=c", true, false, ":compile=off"},
		{":compile=wait", true, false, ":compile=native,tier=1"}, {":compile=wait", false, true, ":compile=c,tier=1"},
		{":compile=wait", true, true, ":compile=off"}, {":compile=wait,tier=0", true, false, ":compile=native,tier=0"},
		{":tier=1", true, true, ":compile=off"}, {":tier=1", true, false, ":compile=native,tier=1"}, {":compile=native,tier=1", false, true, ":compile=off"},
	} {
		o, err := ParseOptions(c.text)
		if err != nil {
			t.Fatal(err)
		}
		o = Forbid(o, c.compilers, c.native)
		if got := o.String(); got != c.want || o.Validate() != nil {
			t.Errorf("%q without compilers (%v), without machine code (%v): %q, want %q", c.text, c.compilers, c.native, got, c.want)
		}
	}
}

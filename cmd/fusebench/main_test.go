package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/machine"
)

// fusebench runs the command and returns its exit code and its output.
func fusebench(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(args, streams{&o, &e})
	return code, o.String(), e.String()
}

func TestUsageErrors(t *testing.T) {
	cases := []struct {
		args []string
		says string
	}{
		{nil, "fusebench: usage: no command: want one of gelu, softmax"},
		{[]string{"nonsense"}, `no command "nonsense": want one of gelu, softmax`},
		{[]string{"roof", "-threads", "2"}, `fusebench: usage: unknown command "roof": its name is now peaks`},
		{[]string{"plans"}, "fusebench plans: usage: no command: want one of list, show"},
		{[]string{"gelu", "-runs"}, "flag needs an argument: -runs"},
		{[]string{"gelu", "-nonsense"}, "-nonsense"},
		{[]string{"gelu", "stray"}, `unexpected "stray"`},
		{[]string{"gelu", "-shape", "0,4"}, "is not a size"},
		{[]string{"gelu", "-shape", "a"}, "is not a size"},
		{[]string{"gelu", "-shape", "65536,65536"}, "more than"},
		{[]string{"gelu", "-dtype", "int32"}, "want float32, float64, float16 or bfloat16"},
		{[]string{"gelu", "-variants", "reference,other"}, `-variants "other"`},
		{[]string{"gelu", "-modes", "lazy"}, `-modes "lazy"`},
		{[]string{"gelu", "-modes", ""}, `"" for flag -modes`},
		{[]string{"gelu", "-runs", "0"}, "-runs"},
		{[]string{"gelu", "-warmup", "-1"}, "-warmup"},
		{[]string{"gelu", "-threads", "-1"}, "-threads"},
		{[]string{"gelu", "-budget", "-1s"}, "-budget"},
		{[]string{"gelu", "-budget", "soon"}, "-budget"},
		{[]string{"gelu", "-tier", "2"}, `"2" for flag -tier`},
		{[]string{"gelu", "-format", "xml"}, "bench, csv, html, json, markdown, svg, table"},
		{[]string{"chain", "-ops", "0"}, `"0" for flag -ops: want a whole number from 1`},
		{[]string{"softmax", "-variants", "first"}, `-variants "first"`},
		{[]string{"layernorm", "-variants", "last,first"}, `-variants "first"`},
		{[]string{"attention", "-shape", "8,64"}, "want 4 numbers: batch,heads,tokens,features"},
		{[]string{"attention", "-shape", "1,1,60000,8"}, "more than"},
		{[]string{"mlp", "-shape", "8"}, "want 3 numbers: rows,features,hidden"},
		{[]string{"mlp", "-shape", "1,1,1", "-variants", "x"}, `-variants "x"`},
		{[]string{"conv", "-shape", "8"}, "want 4 numbers: batch,channels,height,width"},
		{[]string{"conv", "-variants", "5x5"}, `-variants "5x5"`},
		{[]string{"conv", "-shape", "1,40000,1,1"}, "more than"},
		{[]string{"reduce", "-shape", "4,4", "-variants", "sum-2"}, `-variants "sum-2"`},
		{[]string{"matmul", "-shape", "8,8"}, "-shape"},
		{[]string{"matmul", "-variants", "0"}, "want sizes such as 256"},
		{[]string{"matmul", "-variants", "8x8"}, "want sizes such as 256"},
		{[]string{"matmul", "-variants", "8+relu"}, "want sizes such as 256"},
		{[]string{"matmul", "-variants", "100000"}, "more than"},
		{[]string{"explain", "reduce", "-variants", "sum-9"}, `-variants "sum-9"`},
		{[]string{"chain", "-dtype", "float64"}, "float32 only"},
		{[]string{"start", "-program", "x"}, "want one of scalars, tanh"},
		{[]string{"start", "-runs", "0"}, `"0" for flag -runs`},
		{[]string{"start", "-format", "csv"}, "want one of json, table"},
		{[]string{"start", "-device", "cpu:x=1"}, "-device cpu:x=1"},
		{[]string{"start", "stray"}, `unexpected "stray"`},
		{[]string{"serve", "-goroutines", "2,4"}, "1 is missing, with which the others are compared"},
		{[]string{"serve", "-goroutines", "1,x"}, `-goroutines "x"`},
		{[]string{"serve", "-cancel", "1"}, `"1" for flag -cancel`},
		{[]string{"serve", "-slice", "0s"}, `"0s" for flag -slice`},
		{[]string{"serve", "-dtype", "float64"}, "float32 only"},
		{[]string{"train", "-dtype", "float16"}, "float32 and float64 only"},
		{[]string{"serve", "-variants", "batch-0"}, `-variants "batch-0"`},
		{[]string{"serve", "-shape", "8"}, "want 3 numbers: features,hidden,results"},
		{[]string{"explain"}, "want one of gelu, softmax, layernorm, attention, matmul, mlp, reduce, conv, chain, serve"},
		{[]string{"explain", "nonsense"}, "want one of gelu, softmax"},
		{[]string{"explain", "gelu", "-variants", "other"}, `-variants "other"`},
		{[]string{"devices", "stray"}, `unexpected "stray"`},
	}
	for _, c := range cases {
		code, out, errs := fusebench(c.args...)
		if code != exitUsage || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("fusebench %s: exit %d, %q on standard output, %q on standard error; want exit 2 and %q",
				strings.Join(c.args, " "), code, out, errs, c.says)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"-h", "fusebench [global options]"}, {"help", "explain"}, {"gelu -h", "fusebench gelu [options]"}, {"help gelu", "-shape sizes"},
		{"-version", "fusebench version "}, {"plans --help", "prune"}, {"plans gen -help", "fusebench plans gen [options] BUNDLE"}, {"completion bash", "fusebench"},
	} {
		if code, out, errs := fusebench(strings.Fields(c.args)...); code != 0 || errs != "" || !strings.Contains(out, c.says) {
			t.Errorf("fusebench %v: exit %d, %q, %q; want %q", c.args, code, out, errs, c.says)
		}
	}
}

// TestFlags checks flags with one dash and with two, before and after operands, with their values
// after a space and after =.
func TestFlags(t *testing.T) {
	for _, args := range []string{
		"explain gelu -device cpu -variants erf -shape 4,4 -tier 0", "explain -device=cpu gelu --variants erf --shape=4,4 -tier=0",
	} {
		code, out, errs := fusebench(strings.Fields(args)...)
		if code != 0 || errs != "" || !strings.HasPrefix(out, "# gelu erf, cpu, fused, shape 4,4, float32") {
			t.Errorf("fusebench %s: exit %d, %q, %q", args, code, out, errs)
		}
	}
}

func TestMissingDevice(t *testing.T) {
	code, out, errs := fusebench("gelu", "-device", "abacus")
	if code != exitFailed || out != "" || !strings.Contains(errs, "abacus") {
		t.Errorf("exit %d, %q, %q; want exit 1 and a word about abacus", code, out, errs)
	}
}

// TestFallbackIsTold: a device with an option that it does not have says so beside the figures.
func TestFallbackIsTold(t *testing.T) {
	const device = "vulkan:precision=bf16x3"
	d, err := millrace.Open(device)
	if err != nil {
		t.Skip(err)
	}
	used := strings.Contains(d.Description(), "float32 multiplied as 2 parts")
	d.Close()
	code, out, errs := fusebench("matmul", "-device", device, "-modes", "fused", "-variants", "64", "-runs", "2", "-warmup", "1")
	if code != 0 || !strings.Contains(out, device) || strings.Contains(errs, "no matrix units multiply bfloat16") == used {
		t.Errorf("exit %d, in parts: %v, %q\n%s", code, used, errs, out)
	}
}

func TestDevices(t *testing.T) {
	code, out, errs := fusebench("devices")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d, %q", code, errs)
	}
	for _, want := range []string{"cpu", "vulkan", "webgpu", "machine code", "C compiler", "cgo"} {
		if !strings.Contains(out, want) {
			t.Errorf("no word about %s in\n%s", want, out)
		}
	}
}

// TestDevicesAtLength: the CPU, which computes as IEEE 754 says, agrees with what the table of floats
// wants, and its functions are as exact as docs/numerics.md has them.
func TestDevicesAtLength(t *testing.T) {
	code, out, errs := fusebench("devices", "-v")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d, %q", code, errs)
	}
	for i := range floatCases {
		if !strings.Contains(out, "\n"+floatCases[i].name+" ") {
			t.Errorf("no %q in\n%s", floatCases[i].name, out)
		}
	}
	d, err := millrace.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for i := range floatCases {
		c := &floatCases[i]
		got, err := c.on(d)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if c.exact == nil {
			if got != c.wanted() {
				t.Errorf("%s is %s, want %s", c.name, got, c.wanted())
			}
			continue
		}
		if e, err := strconv.ParseFloat(got, 64); err != nil || e < 0.4 || e > 4 {
			t.Errorf("the largest error of %s is %s units in the last place", c.name, got)
		}
	}
	// An error of NaN is not taken for none.
	c := floatCase{operands: [][]float32{{1}}, exact: of1(math.Sqrt)}
	if e := c.largestError([]float32{float32(math.NaN())}); e == e {
		t.Errorf("the error of NaN is %v", e)
	}
	if e := c.largestError([]float32{1 + 0x1p-22}); e != 2 {
		t.Errorf("an error of two units is %v", e)
	}
}

// TestGelu runs the whole command on a small tensor. It checks what does not depend on the
// machine: kernels, bytes, errors, and that hot runs are hot.
func TestGelu(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	code, out, errs := fusebench("gelu", "-device", "cpu", "-shape", "4,8,64", "-runs", "3", "-warmup", "2", "-tier", "0", "-format", "json", "-o", file)
	if code != 0 || out != "" || errs != "" {
		t.Fatalf("exit %d, %q, %q", code, out, errs)
	}
	r := readReport(t, file)
	if len(r.Rows) != 6 {
		t.Fatalf("%d rows, want 3 variants in 2 modes", len(r.Rows))
	}
	tensor := int64(4 * 8 * 64 * 4)
	ops := map[string]float64{"reference": 1, "erf": 5}
	for _, row := range r.Rows {
		what := row.Variant + " " + row.Mode
		if row.Error != "" || row.Runs != 3 || row.Tier != "0" {
			t.Errorf("%s: error %q, %d runs on tier %s", what, row.Error, row.Runs, row.Tier)
		}
		if row.Mode == fused && (row.Kernels != 1 || row.BytesRead != tensor || row.BytesWritten != tensor) {
			t.Errorf("%s: %v kernels, %d bytes read, %d written; want one kernel that reads and writes the tensor once", what, row.Kernels, row.BytesRead, row.BytesWritten)
		}
		if want := ops[row.Variant]; row.Mode == unfused && want != 0 && row.Kernels != want {
			t.Errorf("%s: %v kernels, want one for each of %v operations", what, row.Kernels, want)
		}
		if row.Variant == "custom" && row.Mode == unfused && row.Kernels < 25 {
			t.Errorf("%s: %v kernels: is it fused?", what, row.Kernels)
		}
		if row.ExplorationsHot+row.CompilesHot+row.AllocsHot != 0 {
			t.Errorf("%s: %d explorations, %d compiles, %d allocations in hot runs", what, row.ExplorationsHot, row.CompilesHot, row.AllocsHot)
		}
		limit := number(1e-6)
		if row.Variant == "custom" {
			limit = 3e-6 // formula 7.1.26 is off by 1.5e-7, and x is up to 8
		}
		if !(row.MaxAbsErr < limit) {
			t.Errorf("%s: off by %v, want below %v", what, row.MaxAbsErr, limit)
		}
	}
}

// TestTuned checks that the tuned mode is compared with the default one, and that explain shows
// the timed choices.
func TestTuned(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	code, out, errs := fusebench("matmul", "-device", "cpu", "-modes", "fused,tuned", "-variants", "128", "-threads", "2", "-warmup", "1", "-runs", "3", "-format", "json", "-o", file)
	if code != 0 || out != "" || errs != "" {
		t.Fatalf("exit %d, %q, %q", code, out, errs)
	}
	for _, row := range readReport(t, file).Rows {
		if got := row.VsDefault > 0; got != (row.Mode == tuned) || row.Error != "" {
			t.Errorf("%s: %v times as fast as by default, error %q", row.Mode, row.VsDefault, row.Error)
		}
		if row.Kernels != 1 || row.AllocsHot != 0 {
			t.Errorf("%s: %v kernels, %d allocations in hot runs", row.Mode, row.Kernels, row.AllocsHot)
		}
	}
	code, out, errs = fusebench("explain", "matmul", "-device", "cpu", "-modes", "tuned", "-variants", "128", "-threads", "2")
	tiles := machine.Level() != machine.None
	if code != 0 || errs != "" || strings.Contains(out, "ways and runs by") != tiles || strings.Contains(out, "rows=2") != tiles {
		t.Errorf("exit %d, %q, no timings in\n%s", code, errs, out)
	}
}

func TestChain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	code, out, errs := fusebench("chain", "-device", "cpu", "-ops", "6", "-n", "100", "-runs", "3", "-warmup", "2", "-tier", "0", "-format", "json", "-o", file)
	if code != 0 || out != "" || errs != "" {
		t.Fatalf("exit %d, %q, %q", code, out, errs)
	}
	for _, row := range readReport(t, file).Rows {
		if row.Mode == "go" {
			continue
		}
		want := map[string]float64{fused: 1, unfused: 6}[row.Mode]
		if row.Kernels != want || row.ExplorationsHot+row.CompilesHot != 0 {
			t.Errorf("%s: %v kernels, want %v; %d explorations and %d compiles in hot runs", row.Mode, row.Kernels, want, row.ExplorationsHot, row.CompilesHot)
		}
		if row.Chain == nil || row.Chain.Ops != 6 || !(row.MaxAbsErr < 1e-5) {
			t.Errorf("%s: chain figures %+v, off by %v", row.Mode, row.Chain, row.MaxAbsErr)
		}
	}
}

// TestNothingTimed checks that a report without figures is written and counts as a failure.
func TestNothingTimed(t *testing.T) {
	code, out, errs := fusebench("gelu", "-device", "ref:memory=1", "-shape", "8,64")
	if code != exitFailed || !strings.Contains(out, "out of memory") || !strings.Contains(errs, "nothing could be timed") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}

// TestExplain checks the output of explain: the segment, the plan, the kernel and the tier that
// runs it.
func TestExplain(t *testing.T) {
	code, out, errs := fusebench("explain", "gelu", "-device", "cpu", "-variants", "custom", "-shape", "8,64", "-tier", "0")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d, %q", code, errs)
	}
	for _, want := range []string{"# gelu custom, cpu, fused", "segment", "plan, best: 1 kernels", "kernel 0", "tier 0", "recip", "= fdiv"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestExplainCompiled checks that explain shows the C code if a compiler works.
func TestExplainCompiled(t *testing.T) {
	if state, what := compiler(); state != "present" {
		t.Skip("C compiler:", what)
	}
	if state, what := cgo(); state != "on" {
		t.Skip("cgo:", what)
	}
	code, out, errs := fusebench("explain", "gelu", "-device", "cpu:compile=c", "-variants", "erf", "-shape", "8,64")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d, %q", code, errs)
	}
	if !strings.Contains(out, "tier 1, C") {
		t.Errorf("no C in\n%s", out)
	}
}

func readReport(t *testing.T, file string) *Report {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

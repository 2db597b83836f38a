package onnx

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
)

// nodesEnv names the folder that scripts/onnx.sh makes.
const nodesEnv = "ONNX_NODES"

// differs has tests that cannot pass, with the reason.
var differs = map[string]string{
	"test_qlinearmatmul_2D_int8_float16": wraps, "test_qlinearmatmul_2D_int8_float32": wraps,
	"test_qlinearmatmul_3D_int8_float16": wraps, "test_qlinearmatmul_3D_int8_float32": wraps,
}

const wraps = "the expected values wrap around where the specification asks for saturation"

// noise are the absolute errors of tests whose expected values are other than 0 only by rounding.
var noise = map[string]float64{"test_dft_inverse": 1e-6, "test_dft_inverse_opset19": 1e-6}

var update = flag.Bool("update", false, "rewrite the tables of docs/guides/onnx.md")

// TestNodes runs ONNX's own tests of operators, and compares the counts with the page.
func TestNodes(t *testing.T) {
	dir := os.Getenv(nodesEnv)
	if dir == "" {
		t.Skipf("%s is not set: scripts/onnx.sh makes the tests", nodesEnv)
	}
	all, err := filepath.Glob(filepath.Join(dir, "*", "model.onnx"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no tests in %s", dir)
	}
	counts := map[string]int{}
	for _, file := range all {
		name := filepath.Base(filepath.Dir(file))
		switch verdict, err := nodeTest(file); {
		case verdict != "":
			counts["out of scope: "+verdict]++
		case err != nil && differs[name] != "":
			counts["fail: "+differs[name]]++
		case err != nil:
			t.Errorf("%s: %v", name, err)
		default:
			counts["pass"]++
		}
	}
	table := "| result | tests |\n|---|---|\n"
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		table += fmt.Sprintf("| %s | %d |\n", what, counts[what])
	}
	page(t, "counts", table)
}

// TestPage compares the page's list of operators with the table.
func TestPage(t *testing.T) {
	rows := "| | operators |\n|---|---|\n"
	letter := ""
	for _, name := range slices.Sorted(maps.Keys(table)) {
		shown := name
		if find(name, maxOpset) == nil {
			shown += " (old opsets)"
		}
		if name[:1] != letter {
			letter = name[:1]
			rows = strings.TrimSuffix(rows, ", ")
			if !strings.HasSuffix(rows, "\n") {
				rows += " |\n"
			}
			rows += "| " + letter + " | "
		}
		rows += shown + ", "
	}
	page(t, "operators", strings.TrimSuffix(rows, ", ")+" |\n")
}

// page compares a part of the page, between two comments, with what it should be.
func page(t *testing.T, part, want string) {
	t.Helper()
	const file = "../docs/guides/onnx.md"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), "<!-- "+part+" -->\n")
	got, after, closed := strings.Cut(rest, "<!-- end -->\n")
	if !ok || !closed {
		t.Fatalf("%s has no part %q", file, part)
	}
	if got == want {
		return
	}
	if !*update {
		t.Errorf("%s: part %q is not up to date (go test -update):\n%s", file, part, want)
		return
	}
	text := before + "<!-- " + part + " -->\n" + want + "<!-- end -->\n" + after
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// nodeTest runs one test with all its data sets. verdict says why it is out of scope.
func nodeTest(file string) (verdict string, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	proto, err := decode(data, modelFields, 0)
	if err != nil {
		return "", err
	}
	if verdict := outOfScope(proto); verdict != "" {
		return verdict, nil
	}
	m, err := Open(file)
	if err != nil {
		return "", err
	}
	sets, err := filepath.Glob(filepath.Join(filepath.Dir(file), "test_data_set_*"))
	if err != nil || len(sets) == 0 {
		return "", fmt.Errorf("no data: %v", err)
	}
	for _, set := range sets {
		if err := dataSet(m, proto, set); err != nil {
			return "", err
		}
	}
	return "", nil
}

// outOfScope says why a test is not about what this package does.
func outOfScope(m *protoModel) string {
	for _, v := range slices.Concat(m.graph.inputs, m.graph.outputs) {
		if v.kind == nil || v.kind.tensor == nil {
			return "sequences, maps and optionals"
		}
		if _, err := dtypeOf(v.kind.tensor.elem); err != nil {
			return "element types that tensors lack"
		}
	}
	for _, n := range m.graph.nodes {
		switch {
		case domainOf(n.domain) != "":
			return "other domains"
		case slices.Contains([]string{"ImageDecoder", "RegexFullMatch", "StringSplit", "TfIdfVectorizer"}, n.op):
			return "text and image files"
		case slices.Contains([]string{"RandomUniformLike", "RandomNormalLike", "Bernoulli"}, n.op):
			return "random numbers"
		}
		if n.op == "Dropout" && strings.HasPrefix(m.graph.name, "test_training_dropout") && !strings.Contains(m.graph.name, "zero_ratio") {
			return "random numbers"
		}
		for _, a := range n.attrs {
			if a.name == "to" || a.name == "dtype" || a.name == "output_dtype" {
				if _, err := dtypeOf(a.i); err != nil {
					return "element types that tensors lack"
				}
			}
		}
	}
	for _, o := range m.opsets {
		if domainOf(o.domain) == "" && (o.version < minOpset || o.version > maxOpset) {
			return "opsets before 7"
		}
	}
	return ""
}

func dataSet(m *Model, p *protoModel, dir string) error {
	in := map[string]*millrace.Tensor{}
	for i, v := range p.graph.inputs {
		t, err := readTensor(filepath.Join(dir, fmt.Sprintf("input_%d.pb", i)))
		if err != nil {
			return err
		}
		in[v.name] = t
	}
	out, err := m.Run(context.Background(), in)
	if err != nil {
		return err
	}
	for i, name := range m.Outputs() {
		want, err := readTensor(filepath.Join(dir, fmt.Sprintf("output_%d.pb", i)))
		if err != nil {
			return err
		}
		if err := within(out[name], want, max(1e-7, noise[filepath.Base(filepath.Dir(dir))])); err != nil {
			return fmt.Errorf("output %q: %w", name, err)
		}
	}
	return nil
}

func readTensor(file string) (*millrace.Tensor, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p, err := decode(data, tensorFields, 0)
	if err != nil {
		return nil, err
	}
	d, err := millrace.Default()
	if err != nil {
		return nil, err
	}
	return load(d, p, &storage{})
}

// near compares as ONNX's own runner does: relative error 1e-3, absolute error 1e-7.
func near(got, want *millrace.Tensor) error { return within(got, want, 1e-7) }

func within(got, want *millrace.Tensor, atol float64) error {
	if got.DType() != want.DType() || !slices.Equal(got.Shape(), want.Shape()) {
		return fmt.Errorf("got %v of shape %v, want %v of shape %v", got.DType(), got.Shape(), want.DType(), want.Shape())
	}
	g, err := millrace.Values[float64](got.Cast(millrace.Float64))
	if err != nil {
		return err
	}
	w, err := millrace.Values[float64](want.Cast(millrace.Float64))
	if err != nil {
		return err
	}
	rtol := 1e-3
	if got.DType() == millrace.Float16 || got.DType() == millrace.BFloat16 {
		atol, rtol = 1e-3, 1e-2
	}
	for i := range g {
		same := g[i] == w[i] || math.IsNaN(g[i]) && math.IsNaN(w[i])
		if !same && !(math.Abs(g[i]-w[i]) <= atol+rtol*math.Abs(w[i])) {
			return fmt.Errorf("element %d: got %v, want %v", i, g[i], w[i])
		}
	}
	return nil
}

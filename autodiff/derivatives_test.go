package autodiff_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/internal/testing/optable"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/numerics")

// singular is a line of testdata/derivatives.json: see scripts/derivatives.py.
type singular struct {
	Name, DType, Group string
	Of                 int
	At, In             []string
	Shapes             [][]int
	Weights            any
	Torch, JAX, Exact  string
}

func singulars(t *testing.T) (all []*singular) {
	t.Helper()
	data, err := os.ReadFile("testdata/derivatives.json")
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// numbers parses words. It returns nil for an error of the library and for a library without an
// answer.
func numbers(t *testing.T, words string) (v []float64) {
	t.Helper()
	for _, w := range strings.Fields(words) {
		switch w {
		case "error":
			return nil
		case "none":
			w = "nan" // there is no exact derivative
		}
		x, err := strconv.ParseFloat(w, 64)
		if err != nil {
			t.Fatal(err)
		}
		v = append(v, x)
	}
	return v
}

func (c *singular) dtype() millrace.DType {
	if c.DType == "float32" {
		return millrace.Float32
	}
	return millrace.Float64
}

// String names the function, and the operand if there are several.
func (c *singular) String() string {
	s := c.Name
	if len(c.In) > 1 {
		s += " by " + [...]string{"x", "y", "z"}[c.Of]
	}
	return s
}

// points are the points as the documents print them: a row as it is, else one tuple per element.
func (c *singular) points() string {
	if len(c.At) == 1 {
		return strings.ReplaceAll(c.At[0], " ", ", ")
	}
	var cols [][]string
	for _, a := range c.At {
		cols = append(cols, strings.Fields(a))
	}
	var all []string
	for i := range cols[0] {
		var one []string
		for _, col := range cols {
			one = append(one, col[i])
		}
		all = append(all, "("+strings.Join(one, " ")+")")
	}
	return strings.Join(all, ", ")
}

func flat(v any) (w []float64) {
	switch v := v.(type) {
	case float64:
		return []float64{v}
	case []any:
		for _, x := range v {
			w = append(w, flat(x)...)
		}
	}
	return w
}

// here computes the case at a place. rules are the rules that the derivative used.
func (c *singular) here(t *testing.T, p millrace.Place) (got []float64, rules []string, err error) {
	t.Helper()
	f := layers[c.Name]
	if f == nil {
		f = optable.PointNamed(c.Name)
	}
	if f == nil {
		t.Fatalf("no function %q", c.Name)
	}
	var in []*T
	for i, words := range c.In {
		in = append(in, millrace.FromSliceOn(p, numbers(t, words), c.Shapes[i]...).Cast(c.dtype()))
	}
	in[c.Of] = autodiff.Watch(in[c.Of])
	y := f(in)
	if w := flat(c.Weights); len(w) > 0 {
		y = y.Mul(millrace.FromSliceOn(p, w, y.Shape()...).Cast(c.dtype()))
	}
	y = y.Sum()
	rules = autodiff.RulesOf(y)
	g, err := autodiff.Grad(y, in[c.Of])
	if err != nil {
		return nil, rules, err
	}
	got, err = millrace.Values[float64](g[0].Cast(millrace.Float64))
	return got, rules, err
}

// near reports numbers that are equal up to a function's error.
func (c *singular) near(got, want float64) bool {
	if got == want || math.IsNaN(got) && math.IsNaN(want) {
		return true
	}
	rel, least := 5e-6, 0x1p-126 // JAX flushes smaller numbers
	if c.DType == "float64" {
		rel, least = 1e-13, 0x1p-1022
	}
	return math.Abs(got-want) <= max(rel*math.Abs(want), least)
}

func (c *singular) alike(got []float64, others ...[]float64) bool {
	for i, g := range got {
		if !slices.ContainsFunc(others, func(o []float64) bool { return o != nil && c.near(g, o[i]) }) {
			return false
		}
	}
	return got != nil || slices.ContainsFunc(others, func(o []float64) bool { return o == nil })
}

// needsReason reports a derivative that needs a reason in the documents: an exact one exists and
// ours differs, or none exists and ours is neither PyTorch's nor JAX's.
func (c *singular) needsReason(t *testing.T, got []float64) bool {
	exact, torch, jax := numbers(t, c.Exact), numbers(t, c.Torch), numbers(t, c.JAX)
	for i, w := range strings.Fields(c.Exact) {
		switch {
		case w != "none":
			if got == nil || !c.near(got[i], exact[i]) {
				return true
			}
		case got == nil:
			return c.Torch != "error" && c.JAX != "error"
		case !(torch != nil && c.near(got[i], torch[i])) && !(jax != nil && c.near(got[i], jax[i])):
			return true
		}
	}
	return false
}

// TestDerivativesAtSingularPoints tests derivatives where a formula has 0/0, inf - inf or 0 * inf,
// where squares overflow or become 0, and where elements are equal. They are exact, or else follow
// PyTorch's or JAX's convention, or one that the documents give a reason for. They have the same
// bits eager, fused or not, and in a scope.
func TestDerivativesAtSingularPoints(t *testing.T) {
	fused := devices(t, "cpu")
	plain := devices(t, "cpu:fusion=off,compile=off")
	used, unused := map[string]bool{}, map[string]bool{}
	for key := range singularReasons {
		unused[key] = true
	}
	var lines []tableLine
	for _, c := range singulars(t) {
		got, rules, err := c.here(t, fused)
		for _, r := range rules {
			used[r] = true
		}
		other, _, err2 := c.here(t, plain)
		var scoped []float64
		err3 := fused.Scope(func(sc *millrace.Scope) (err error) {
			scoped, _, err = c.here(t, sc)
			return err
		})
		if (err == nil) != (err2 == nil) || (err == nil) != (err3 == nil) || !sameBits(got, other) || !sameBits(got, scoped) {
			t.Errorf("%v at %s, %s: %v eager, %v not fused, %v in a scope (%v, %v, %v)", c, c.points(), c.DType, got, other, scoped, err, err2, err3)
		}
		if c.DType == "float32" { // the float64 case follows
			lines = append(lines, tableLine{c: c, got: got})
		}
		if !c.needsReason(t, got) {
			continue
		}
		key := c.String() + " at " + c.points()
		if singularReasons[key] == "" {
			key = c.String()
		}
		reason := singularReasons[key]
		if reason == "" {
			t.Errorf("%v at %s, %s: %s, PyTorch %s, JAX %s, exact %s, and no reason (%v)", c, c.points(), c.DType, words(got), c.Torch, c.JAX, c.Exact, err)
		}
		delete(unused, key)
		lines[len(lines)-1].reason = reason
	}
	for key := range unused {
		t.Errorf("%s needs no reason", key)
	}
	names := autodiff.RuleNames()
	for _, name := range names {
		if !used[name] && !linear[name] {
			t.Errorf("the rule of %s is not tried at singular points", name)
		}
	}
	for name := range linear {
		if !slices.Contains(names, name) {
			t.Errorf("there is no rule of %s", name)
		}
	}
	if t.Failed() && !*update {
		return
	}
	writeTables(t, lines)
}

// devices opens a device for a test.
func devices(t *testing.T, spec string) *millrace.Device {
	t.Helper()
	d, err := millrace.Open(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func sameBits(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool {
		return math.Float64bits(x) == math.Float64bits(y) || math.IsNaN(x) && math.IsNaN(y)
	})
}

// words are numbers as the tables print them.
func words(v []float64) string {
	if v == nil {
		return "error"
	}
	var all []string
	for _, x := range v {
		s := strconv.FormatFloat(x, 'g', 5, 64)
		s = strings.Replace(strings.Replace(s, "+Inf", "inf", 1), "-Inf", "-inf", 1)
		if s == "-0" { // the sign of a derivative that is 0 is not specified
			s = "0"
		}
		all = append(all, s)
	}
	return strings.Join(all, ", ")
}

type tableLine struct {
	c      *singular
	got    []float64
	reason string
}

func (l *tableLine) row(t *testing.T) string {
	c := l.c
	other := func(text string) string {
		v := numbers(t, text)
		if text == "" {
			return "has none"
		}
		if c.alike(l.got, v) && (v == nil) == (l.got == nil) {
			return "="
		}
		return words(v)
	}
	exact := strings.Fields(c.Exact)
	same := true
	for i, v := range numbers(t, c.Exact) {
		if exact[i] == "none" {
			exact[i], same = "–", false
			continue
		}
		same = same && l.got != nil && c.near(l.got[i], v)
		exact[i] = words([]float64{v})
	}
	want := strings.Join(exact, ", ")
	if same {
		want = "="
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s |\n", c.String(), c.points(), words(l.got), want, other(c.Torch), other(c.JAX), l.reason)
}

// writeTables compares the tables of the documents with the computed derivatives, or rewrites them.
func writeTables(t *testing.T, lines []tableLine) {
	const begin, end = "<!-- derivatives of ", "<!-- end of derivatives -->"
	written := map[string]bool{}
	for _, page := range []string{"../docs/numerics/derivatives.md", "../docs/numerics/derivatives-rows.md"} {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(string(data), begin)
		text := parts[0]
		for _, part := range parts[1:] {
			group, _, _ := strings.Cut(part, " -->")
			_, rest, ok := strings.Cut(part, end)
			if !ok {
				t.Fatalf("%s: no end of %s", page, group)
			}
			table := "| derivative of | at | here | exact | PyTorch | JAX | why |\n|---|---|---|---|---|---|---|\n"
			for _, l := range lines {
				if l.c.Group == group {
					table += l.row(t)
					written[group] = true
				}
			}
			text += begin + group + " -->\n" + table + end + rest
		}
		if text == string(data) {
			continue
		}
		if !*update {
			t.Errorf("%s: the tables are not what is computed; run with -update to write them, and read the difference", page)
			continue
		}
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range lines {
		if !written[l.c.Group] {
			t.Fatalf("no page has the table of %s", l.c.Group)
		}
	}
}

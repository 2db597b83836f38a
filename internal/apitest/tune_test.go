//go:build cgo && unix

package apitest

import (
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/plancache"
)

// prefer rewrites the only tuning table of a cache, so that the candidates which
// turn this knob are the fastest, in the order that it gives them in, and removes
// all code.
func prefer(t *testing.T, dir, knob string) (names []string) {
	t.Helper()
	c, err := plancache.OpenExisting(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	files, err := c.List()
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for _, f := range files {
		switch f.Kind() {
		case "object":
			if err := c.Remove(f.Name); err != nil {
				t.Fatal(err)
			}
		case "tuning":
			tables++
			e, err := c.Read(f.Name)
			if err != nil {
				t.Fatal(err)
			}
			table, err := autotune.Parse(string(e.Value))
			if err != nil {
				t.Fatal(err)
			}
			table.Rows = slices.DeleteFunc(table.Rows, func(r autotune.Row) bool { return r.From > 0 }) // combinations
			for i := range table.Rows {
				row, nanos := &table.Rows[i], int64(1e6)
				if strings.HasPrefix(row.Name, knob+"=") {
					names = append(names, row.Name)
					nanos = int64(len(names)) * 1e5
				}
				row.Refused, row.Lacking, row.Nanos = "", false, slices.Repeat([]int64{nanos}, 12)
			}
			if err := c.Put(e.Kind, e.Key, []byte(table.Text())); err != nil {
				t.Fatal(err)
			}
		}
	}
	if tables != 1 {
		t.Fatalf("%d tuning tables", tables)
	}
	return names
}

// TestWinnerWithoutCode: a table says that a variant is the fastest whose code
// cannot be made here. The next one takes its place, and one launch has fallen
// back, not all of them.
func TestWinnerWithoutCode(t *testing.T) {
	defer fault.Reset()
	o := millrace.Options{Threads: 2, Compile: millrace.CompileWait, Tune: millrace.TuneWait, Explore: millrace.ExploreWait, Cache: t.TempDir()}
	data := make([]float32, 1<<19)
	for i := range data {
		data[i] = float32(i)
	}
	run := func(dev *millrace.Device) *millrace.Tensor {
		y := millrace.FromSliceOn(dev, data, len(data)).MulScalar(2).AddScalar(1)
		got, err := millrace.Values[float32](y)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if got[i] != float32(data[i]*2)+1 {
				t.Fatalf("element %d is %v", i, got[i])
			}
		}
		return y
	}
	dev := open(t, o)
	run(dev)
	s := dev.Stats()
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
	if s.Runtime.Compiles == 0 && !compiles(t) {
		t.Skip("no compiler")
	}
	order := prefer(t, o.Cache, "unroll")
	if len(order) < 2 {
		t.Fatalf("only %v to choose from", order)
	}
	dev = open(t, o)
	fault.SetAfter(fault.Compile, 1, 1) // the default is compiled, the winner is not, the next one is
	var text string
	for range 10 {
		text = run(dev).Explain()
	}
	if s = dev.Stats(); s.Tunings != 0 || s.Runtime.CompileFails != 1 || s.Runtime.Fallbacks != 1 || s.Fallbacks != 1 {
		t.Errorf("%d tunings, %d failed compiles, %d launches fell back, %d choices", s.Tunings, s.Runtime.CompileFails, s.Runtime.Fallbacks, s.Fallbacks)
	}
	if !strings.Contains(text, `runs by "`+order[1]+`"`) {
		t.Error(text)
	}
}

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace-go/millrace/ir"
)

// TestGenerated compares the files of interp with the current op table and expansions.
func TestGenerated(t *testing.T) {
	dir := filepath.Join("..", "..", "runtime", "cpu", "internal", "interp")
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is out of date: run go generate ./runtime/cpu/internal/interp", name)
		}
	}
	old, err := filepath.Glob(filepath.Join(dir, "z_*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range old {
		if _, ok := files[filepath.Base(path)]; !ok {
			t.Errorf("%s is not generated any more: remove it", path)
		}
	}
}

// TestEveryPrimitive checks that every primitive in an expansion has a function: then every kernel
// can run.
func TestEveryPrimitive(t *testing.T) {
	l := collect()
	have := map[[2]any]bool{}
	for _, r := range l.rows {
		have[[2]any{r.op, r.dt}] = true
	}
	for _, f := range l.fns {
		for _, in := range f.prog.Code {
			switch in.Op {
			case ir.Param, ir.Const:
			default:
				if !have[[2]any{in.Op, in.DT}] {
					t.Errorf("%s needs %v of %v", f.name, in.Op, in.DT)
				}
			}
		}
	}
}

// TestSharing checks that signs separate functions only where they matter.
func TestSharing(t *testing.T) {
	l := collect()
	fn := func(op ir.Op, dt, in ir.DType) int {
		for _, r := range l.rows {
			if r.op == op && r.dt == dt && r.in == in {
				return r.fn
			}
		}
		t.Fatalf("no function of %v of %v", op, dt)
		return 0
	}
	if fn(ir.Add, ir.Int32, 0) != fn(ir.Add, ir.Uint32, 0) {
		t.Error("addition depends on the sign")
	}
	if fn(ir.Add, ir.Float32, 0) == fn(ir.Add, ir.Uint32, 0) {
		t.Error("float addition is integer addition")
	}
	if fn(ir.Where, ir.Float32, 0) != fn(ir.Where, ir.Int32, 0) {
		t.Error("a select looks at the dtype")
	}
	if fn(ir.Lt, ir.Bool, ir.Int32) == fn(ir.Lt, ir.Bool, ir.Uint32) {
		t.Error("comparison ignores the sign")
	}
}

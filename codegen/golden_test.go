package codegen

import (
	"testing"

	"github.com/millrace-go/millrace/internal/testing/golden"
	"github.com/millrace-go/millrace/ir"
)

// TestGolden runs testdata: kernel text in, kernel text out. It also checks that every rewrite rule
// is used in some case.
func TestGolden(t *testing.T) {
	fired := map[string]bool{}
	for op := range rulesOf {
		for i := range rulesOf[op] {
			r := &rulesOf[op][i]
			try := r.try
			r.try = func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
				v, ok := try(s, in)
				if ok {
					fired[r.law+r.op.String()] = true
				}
				return v, ok
			}
			t.Cleanup(func() { r.try = try })
		}
	}
	golden.Run(t, "testdata", map[string]golden.Handler{
		"simplify": func(t *testing.T, c *golden.Case) string { return rewrite(t, c, Simplify) },
		"lower":    func(t *testing.T, c *golden.Case) string { return rewrite(t, c, Lower) },
		"parse": func(t *testing.T, c *golden.Case) string {
			return rewrite(t, c, func(k *Kernel) (*Kernel, error) { return k, nil })
		},
	})
	for _, r := range rules {
		if !fired[r.law+r.op.String()] {
			t.Errorf("%s: no case for the rule %s", r.op, r.law)
		}
	}
}

func rewrite(t *testing.T, c *golden.Case, f func(*Kernel) (*Kernel, error)) string {
	k, err := Parse(c.Input)
	if err != nil {
		return "error: " + err.Error()
	}
	k, err = f(k)
	if err != nil {
		return "error: " + err.Error()
	}
	if err := k.Verify(); err != nil {
		t.Errorf("%s:%d: the result is no kernel: %v", c.File, c.Line, err)
	}
	return k.String()
}

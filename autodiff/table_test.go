package autodiff

import (
	"testing"

	"github.com/millrace-go/millrace/ir"
)

// Every op that a user can record has a rule, or a reason for having none.
func TestEveryOp(t *testing.T) {
	for op := ir.Op(1); op < ir.NumOps; op++ {
		info := op.Info()
		if info.Name == "" || op.Class() == ir.ClassPrim {
			continue
		}
		r := rules[op]
		switch {
		case r == nil:
			t.Errorf("%s has neither a rule nor a reason", info.Name)
		case (r.back == nil) == (r.none == ""):
			t.Errorf("%s needs a rule or a reason, not both", info.Name)
		}
	}
}

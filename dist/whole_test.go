package dist_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/internal/hold"
	"github.com/millrace-go/millrace/nn"
)

// state is a module of one parameter.
type state struct{ p *nn.Param }

func (s state) State() []nn.Named { return []nn.Named{{Name: "momentum", Param: s.p}} }

// TestSaveCannotJoin: where rank 0 cannot make the whole tensor of divided state, Save is an error of
// all ranks, and the World goes on.
func TestSaveCannotJoin(t *testing.T) {
	ws, errs := open(2, func(int, *dist.Options) {})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	each(ws, func(w *dist.World) {
		defer w.Close()
		p := nn.NewBuffer(millrace.OnesOn(stream(t), millrace.Float32, 2))
		defer p.Tensor().Release()
		whole := 4
		if w.Rank() == 0 {
			whole = 5 // the ranks' parts have too few elements for it
		}
		hold.MarkPart(p, &hold.Part{World: w, Shape: []int{whole}, From: 2 * w.Rank(), To: 2*w.Rank() + 2})
		if err := w.Save(context.Background(), path, state{p}); err == nil || !strings.Contains(err.Error(), "momentum") {
			t.Errorf("rank %d: Save returns %v", w.Rank(), err)
		}
		if err := w.Barrier(context.Background()); err != nil {
			t.Errorf("rank %d: %v", w.Rank(), err)
		}
	})
}

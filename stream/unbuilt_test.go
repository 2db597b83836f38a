package stream

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/internal/testing/refdev"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// A plan with a kernel that the device refuses runs op by op. Stats count it, and the trace hook
// gets the op and its line. The report and Explain tell it for the plan that runs.
func TestUnbuiltPlansAreSeen(t *testing.T) {
	refused := errors.New("67 operands are too many")
	gate := func(n int) error {
		if n == 1 {
			return refused
		}
		return nil
	}
	var told []error
	d, err := OpenOn(&builder{Device: refdev.New(runtime.Config{}), gate: gate}, device.Options{
		Explore: device.ExploreWait, Trace: &device.Trace{Error: func(err error) { told = append(told, err) }}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	e := &env{t, d}
	for range 2 {
		x := e.host(e.place(), ir.Shape{2}, 1, 2)
		e.want(add(e, mul(e, x, 3), 1), 4, 7)
	}
	s := d.Stats()
	if s.Unbuilt != 1 || s.Fallbacks != 1 || s.Kernels != 4 {
		t.Errorf("%d plans that could not be built, %d fallbacks, %d kernels", s.Unbuilt, s.Fallbacks, s.Kernels)
	}
	var op *operror.Error
	if len(told) != 1 || !errors.Is(told[0], refused) || !errors.As(told[0], &op) || op.Op != "mul" || !strings.Contains(op.Caller, "_test.go:") {
		t.Fatalf("told of %v", told)
	}
	r := d.Report()
	if len(r.Plans) != 1 || !strings.HasPrefix(r.Plans[0].Mode, "unfused, as the plan that fuses could not be built: ") || !strings.Contains(r.Plans[0].Mode, op.Caller) {
		t.Errorf("the report has the plans %+v", r.Plans)
	}
	for _, c := range r.Counters {
		if c.Name == "Unbuilt" && c.Value == 1 {
			return
		}
	}
	t.Error("no such counter in the report")
}

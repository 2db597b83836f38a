package stream

import (
	"errors"
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/operror"
)

// A driver's invariant breaks when the tuner requests its choices. This is found before other
// streams can see the memory that the job would have written. The error is reported, and the
// results are computed op by op.
func TestTuneAskedOfABrokenDriver(t *testing.T) {
	var told []error
	dev := &tunable{takes: ways(1, 2), breaks: "broken"}
	e := openTunable(t, dev, func(o *device.Options) { o.Trace = &device.Trace{Error: func(err error) { told = append(told, err) }} })
	halves(e, 5)
	var bug *operror.Bug
	if len(told) != 1 || !errors.As(told[0], &bug) || bug.Cause != "broken" || e.d.Stats().Fallbacks != 1 {
		t.Errorf("told of %v, %d fallbacks", told, e.d.Stats().Fallbacks)
	}
}

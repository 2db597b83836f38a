package stream

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/report"
	"github.com/millrace-go/millrace/ir"
)

// TestHostOpsAreShown: hooks and the report have each host op with its bytes, its time and its
// error. The row of the stream has the time for which a job waited for one.
func TestHostOpsAreShown(t *testing.T) {
	var mu sync.Mutex
	var events []device.HostOpEvent
	trace := &device.Trace{HostOp: func(ev device.HostOpEvent) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, ev)
	}}
	e := open(t, func(o *device.Options) { o.Report, o.Trace = true, trace })
	c := &copies{lane: e.d.NewHostLane()}
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	cut := errors.New("the wire is cut")
	c.err = cut
	if _, err := e.read(c.of(mul(e, x, 2))); !errors.Is(err, cut) {
		t.Fatal(err)
	}
	c.err = nil
	waits := func(s report.Span) bool { return s.Kind == report.Wait }
	ops := 1
	for took := time.Millisecond; !slices.ContainsFunc(e.d.Report().Spans, waits); took *= 2 { // a busy machine may need longer than the op takes
		r := new(Value)
		HostOp{Lane: c.lane, Name: "slow", DT: ir.Float32, Shape: ir.Shape{2}, Begin: func() HostFunc {
			return func(dst, src []byte, _ error) error {
				time.Sleep(took)
				copy(dst, src)
				return nil
			}
		}}.Record(r, x)
		e.want(mul(e, r, 3), 3, 6)
		ops++
	}
	mu.Lock()
	defer mu.Unlock()
	if len(events) != ops {
		t.Fatalf("told of %d host ops, %d ran", len(events), ops)
	}
	first, last := events[0], events[ops-1]
	if first.Op != "copy" || first.Bytes != 8 || first.Stream == 0 || first.Device != e.d.Number || !errors.Is(first.Err, cut) {
		t.Errorf("the first one: %+v", first)
	}
	if last.Op != "slow" || last.Elapsed < time.Millisecond || last.Start.IsZero() || last.Err != nil {
		t.Errorf("the last one: %+v", last)
	}
	r := e.d.Report()
	shown := 0
	for _, s := range r.Spans {
		if row := r.Rows[s.Row]; s.Kind == report.Host {
			if shown++; row != "host ops" || !strings.Contains(s.Note, "of 8 bytes") {
				t.Errorf("the report has %+v in row %q", s, row)
			}
		} else if s.Kind == report.Wait && (!strings.HasPrefix(row, "stream") || s.Dur <= 0) {
			t.Errorf("a wait %+v in row %q", s, row)
		}
	}
	if shown != ops {
		t.Errorf("the report shows %d of %d host ops", shown, ops)
	}
}

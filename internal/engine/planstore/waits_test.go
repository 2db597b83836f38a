package planstore

import (
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/runtime"
)

// If a program does not wait for the best plan, both the search and the greedy plan are bounded.
func TestPlansOfFirstRunsAreBounded(t *testing.T) {
	for mode, bounded := range map[device.ExploreMode]bool{device.ExploreBackground: true, device.ExploreWait: false} {
		p := &Store{Base: &device.Base{Opts: device.Options{Explore: mode}, Caps: &runtime.Caps{}}, Quick: QuickEffort}
		if o := p.exploreOptions(); o.Waits != bounded || (o.Effort > 0) != bounded {
			t.Errorf("explore mode %v: %+v", mode, o)
		}
	}
}

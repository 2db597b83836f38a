package acrosstest

import (
	"fmt"
	"sync"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
)

// devices are those of this process, by the number of their threads.
var devices = struct {
	sync.Mutex
	open map[int]*millrace.Device
}{open: map[int]*millrace.Device{}}

// Place is a stream of its own on a device of so many threads. Ranks that are goroutines must not
// share a stream. Kernels are not compiled: plans are many here, and runs few.
func Place(threads int) (millrace.Place, error) {
	devices.Lock()
	defer devices.Unlock()
	d := devices.open[threads]
	if d == nil {
		var err error
		if d, err = millrace.Open(fmt.Sprintf("cpu:cache=off,compile=off,threads=%d", threads)); err != nil {
			return nil, err
		}
		devices.open[threads] = d
	}
	return d.NewStream(), nil
}

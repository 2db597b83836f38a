package acrosstest

import (
	"fmt"
	"sync"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
)

// devices are those of this process, by the number of their threads and the rank that owns one, or -1.
var devices = struct {
	sync.Mutex
	open map[[2]int]*millrace.Device
}{open: map[[2]int]*millrace.Device{}}

// Place is a stream of its own on a device of so many threads. Ranks that are goroutines must not
// share a stream. Kernels are not compiled: plans are many here, and runs few.
func Place(threads int) (millrace.Place, error) { return stream(threads, -1) }

// placeOf is a stream on a device that no other rank uses. Bind is an error while other goroutines
// set tensors of the device.
func placeOf(rank int) (millrace.Place, error) { return stream(1, rank) }

func stream(threads, rank int) (millrace.Place, error) {
	devices.Lock()
	defer devices.Unlock()
	d := devices.open[[2]int{threads, rank}]
	if d == nil {
		var err error
		if d, err = millrace.Open(fmt.Sprintf("cpu:cache=off,compile=off,threads=%d", threads)); err != nil {
			return nil, err
		}
		devices.open[[2]int{threads, rank}] = d
	}
	return d.NewStream(), nil
}

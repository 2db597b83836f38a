//go:build cgo && ((linux && !android && amd64) || darwin || (windows && amd64))

package gpu

import (
	"errors"
	goruntime "runtime"
	"time"

	"github.com/rajveermalviya/go-webgpu/wgpu"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// How long a wait polls before it sleeps between polls. A sleep costs about a millisecond, and a
// small dispatch takes a tenth of that. Polling threads take cores from an adapter that computes on
// them. They take nothing from hardware, where a sleep should cost little compared with the work
// waited for.
const (
	spinSoftware = 500 * time.Microsecond
	spinHardware = 20 * time.Millisecond
)

// spin calls done, under the lock, until it is true.
func (d *Device) spin(done func() bool) {
	limit := spinHardware
	if d.info.Kind == wgpu.AdapterType_CPU.String() {
		limit = spinSoftware
	}
	start := time.Now()
	locked := func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return done()
	}
	for {
		if locked() {
			return
		}
		if time.Since(start) < limit {
			goruntime.Gosched()
			continue
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// Wait waits until all submitted work is done, however long that takes.
func (d *Device) Wait() error {
	d.mu.Lock()
	err := d.usable()
	d.mu.Unlock()
	if err != nil {
		return err
	}
	d.spin(func() bool { return d.usable() != nil || poll(d.dev) })
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return err
	}
	d.queued = 0
	return d.check(nil)
}

// Close waits for submitted work and for transfers, and releases the device and everything made on
// it; later calls return gpurun.ErrClosed. A lost device is not released: its driver cannot be
// trusted with that.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return gpurun.ErrClosed
	}
	d.closed = true // nothing new is submitted from here on
	lost := d.lost != nil
	d.mu.Unlock()
	if lost {
		return nil
	}
	// The native release waits too, but gives up after five seconds.
	d.spin(func() bool { return d.lost != nil || poll(d.dev) && d.transfers == 0 })
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost != nil || errors.Is(d.check(nil), gpurun.ErrLost) { // lost meanwhile
		return nil
	}
	for b := range d.buffers {
		b.gone = true
		b.ref.Release()
	}
	for p := range d.pipelines {
		p.release()
	}
	d.buffers, d.pipelines = nil, nil
	d.queue.Release()
	d.dev.Release()
	d.in.Release() // releases the driver's device as well
	d.faults.free()
	return nil
}

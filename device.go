package millrace

import (
	"context"
	"errors"
	"sync"

	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/stream"
)

// Device is an open device: it holds tensors, the plans that were found for
// the program, and the kernels made for them. All methods are safe for
// concurrent use.
type Device struct {
	d *stream.Device
}

// made reports that d was opened: it is not nil and not the zero Device.
func (d *Device) made() bool { return d != nil && d.d != nil }

// defaultDevice is opened by the first tensor that names no place.
var defaultDevice struct {
	sync.Mutex
	d *Device
}

// Default is the device that functions without a place use. It is opened when
// it is first needed: the one MILLRACE_DEVICE describes, such as "webgpu" or
// "cpu:threads=2", or else the CPU. An opening that failed is tried again the
// next time.
func Default() (*Device, error) {
	defaultDevice.Lock()
	defer defaultDevice.Unlock()
	if defaultDevice.d == nil {
		d, err := OpenOptions(Options{})
		if err != nil {
			return nil, err
		}
		defaultDevice.d = d
	}
	return defaultDevice.d, nil
}

// Open opens a device by its text form: the driver's name, then options as
// [Options.String] prints them: "cpu", "cpu:threads=2,compile=wait", "webgpu".
// With an empty name it is the device that MILLRACE_DEVICE names, or the CPU.
// A driver that is not linked in, or that cannot start here, is ErrNoDriver
// with what to import or install. Each call opens another device; a tensor
// goes from one to another by [Tensor.To].
func Open(device string) (*Device, error) {
	o, err := ParseOptions(device)
	if err != nil {
		return nil, err
	}
	return OpenOptions(o)
}

// OpenOptions opens a device. The zero Options open the device that
// MILLRACE_DEVICE describes, or the CPU; fields that are set take precedence
// over that variable.
func OpenOptions(o Options) (*Device, error) {
	o, err := withEnvironment(o)
	if err != nil {
		return nil, err
	}
	d, err := stream.Open(o)
	if err != nil {
		return nil, err
	}
	if d.Options().Report && d.Name() == "cpu" {
		d.KeepPeaks(measuredPeaks()) // before anything runs that a measurement would disturb
	}
	watchReports(d)
	return &Device{d}, nil
}

// Drivers lists the names that Open accepts in this program, sorted.
func Drivers() []string { return runtime.Drivers() }

// Name of the driver, such as "cpu".
func (d *Device) Name() string {
	if !d.made() {
		return ""
	}
	return d.d.Name()
}

// Description of the adapter or the instruction set, for people.
func (d *Device) Description() string {
	if !d.made() {
		return ""
	}
	return d.d.Caps.Description
}

// Supports reports whether the device has a dtype; tensors of others are
// ErrUnsupported.
func (d *Device) Supports(dt DType) bool {
	return d.made() && dt.Tensor() && d.d.Caps.DTypes.Has(dt)
}

// Exact reports a device that computes the same bits as every other exact one,
// fused or not; the others stay within a tolerance that each op publishes.
func (d *Device) Exact() bool { return d.made() && d.d.Caps.Exact }

// DefaultStream is the stream of tensors that are made on the device itself.
func (d *Device) DefaultStream() *Stream {
	if !d.made() {
		return nil
	}
	return &Stream{d.d.Default()}
}

// NewStream makes another stream. It is cheap and has no thread of its own:
// take one for each request or goroutine.
func (d *Device) NewStream() *Stream {
	if !d.made() {
		return nil
	}
	return &Stream{d.d.NewStream()}
}

// Scope is [Stream.Scope] on the default stream.
func (d *Device) Scope(f func(sc *Scope) error) error { return d.DefaultStream().Scope(f) }

// Sync is [Stream.Sync] for all streams of the device: it runs what was
// recorded on any of them and returns the first error of any that nobody has
// seen yet.
func (d *Device) Sync(ctx context.Context) error {
	if !d.made() {
		return errNilDevice
	}
	return d.d.Sync(ctx)
}

// Err is [Stream.Err] for all streams of the device: the first error of any
// that nobody has seen yet, once.
func (d *Device) Err() error {
	if !d.made() {
		return errNilDevice
	}
	return d.d.Err()
}

// Wait returns when the work submitted by all streams is done and nothing is
// compiled in the background any more. It is for measuring.
func (d *Device) Wait() error {
	if !d.made() {
		return errNilDevice
	}
	return d.d.Wait()
}

// Stats are the device's counters since it was opened.
func (d *Device) Stats() Stats {
	if !d.made() {
		return Stats{}
	}
	s := d.d.Stats()
	if p := d.d.Profile; p != nil {
		peaks := d.d.Peaks()
		took, share := p.Work(peaks.Flops, peaks.Bytes)
		s.KernelNanos, s.RoofShare = int64(took), share
	}
	return s
}

// ResetPeak makes Stats().Runtime.PeakBytes, the most bytes of device memory that
// were live at one moment, start again from those that are live now.
func (d *Device) ResetPeak() {
	if d.made() {
		d.d.ResetPeak()
	}
}

// Close waits for what runs, ends background compiles and frees the memory.
// Tensors of the device are ErrClosed from then on. Closing twice is harmless.
func (d *Device) Close() error {
	if !d.made() {
		return nil
	}
	first := !d.d.Closed.Load()
	err := d.d.Close()
	if first {
		err = errors.Join(err, closedReports(d.d))
	}
	return err
}

var errNilDevice = errors.New("nil device or stream, or one that is no open one's: see Open, Device.NewStream and Stream.Scope")

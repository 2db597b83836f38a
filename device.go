package millrace

import (
	"context"
	"errors"
	"sync"

	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/stream"
)

// Device is an open device: it holds tensors, the plans found for the program, and their kernels.
// All methods are safe for concurrent use.
type Device struct {
	d *stream.Device
}

// made reports that d was opened, so that d is neither nil nor the zero Device.
func (d *Device) made() bool { return d != nil && d.d != nil }

// defaultDevice is opened when the first tensor without a place is made.
var defaultDevice struct {
	sync.Mutex
	d *Device
}

// Default is the device for functions without a place: the one that MILLRACE_DEVICE describes,
// such as "webgpu" or "cpu:threads=2", or else the CPU. It is opened when it is first needed.
// After an opening that failed, the next call tries again.
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

// Open opens a device by its text form: the driver's name, then options as [Options.String]
// prints them, such as "cpu", "cpu:threads=2,compile=wait" or "webgpu". With an empty name it is
// the device that MILLRACE_DEVICE names, or the CPU. ErrNoDriver means that the program has no
// such driver, or that the driver cannot start here; its text says what to import or install.
// Each call opens another device. [Tensor.To] copies a tensor from one device to another.
func Open(device string) (*Device, error) {
	o, err := ParseOptions(device)
	if err != nil {
		return nil, err
	}
	return OpenOptions(o)
}

// OpenOptions opens a device. The zero Options open the device that MILLRACE_DEVICE describes, or
// the CPU. Fields that are set take precedence over that variable.
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

// Name is the name of the driver, such as "cpu".
func (d *Device) Name() string {
	if !d.made() {
		return ""
	}
	return d.d.Name()
}

// Description describes the adapter or the instruction set, for people.
func (d *Device) Description() string {
	if !d.made() {
		return ""
	}
	return d.d.Caps.Description
}

// Supports reports whether the device can have tensors of dt. Tensors of other dtypes are
// ErrUnsupported.
func (d *Device) Supports(dt DType) bool {
	return d.made() && dt.Tensor() && d.d.Caps.DTypes.Has(dt)
}

// Exact reports that the device computes the same bits as every other exact one, fused or not.
// Results of other devices are within a tolerance that each op publishes.
func (d *Device) Exact() bool { return d.made() && d.d.Caps.Exact }

// DefaultStream is the stream of tensors whose place is the device itself.
func (d *Device) DefaultStream() *Stream {
	if !d.made() {
		return nil
	}
	return &Stream{d.d.Default()}
}

// NewStream makes another stream. A stream is cheap and has no thread of its own: make one for
// each request or goroutine.
func (d *Device) NewStream() *Stream {
	if !d.made() {
		return nil
	}
	return &Stream{d.d.NewStream()}
}

// Scope is [Stream.Scope] on the default stream.
func (d *Device) Scope(f func(sc *Scope) error) error { return d.DefaultStream().Scope(f) }

// Sync is [Stream.Sync] for all streams of the device: it runs the recorded ops of all of them
// and waits. It returns the first error of any stream that has not been returned yet.
func (d *Device) Sync(ctx context.Context) error {
	if !d.made() {
		return errNilDevice
	}
	return d.d.Sync(ctx)
}

// Err is [Stream.Err] for all streams of the device: it returns the first error of any of them
// that has not been returned yet.
func (d *Device) Err() error {
	if !d.made() {
		return errNilDevice
	}
	return d.d.Err()
}

// Wait returns when all submitted work of all streams is done and no background compile runs. It
// is for measurements.
func (d *Device) Wait() error {
	if !d.made() {
		return errNilDevice
	}
	return d.d.Wait()
}

// Stats returns the device's counters since it was opened.
func (d *Device) Stats() Stats {
	if !d.made() {
		return Stats{}
	}
	s := d.d.Stats()
	if p := d.d.Profile; p != nil {
		peaks := d.d.Peaks()
		took, share := p.Work(peaks.Flops, peaks.Bytes)
		s.KernelNanos, s.PeakShare = int64(took), share
	}
	return s
}

// ResetPeak restarts Stats().Runtime.PeakBytes, the most bytes of device memory that were live at
// one moment, from the bytes that are live now.
func (d *Device) ResetPeak() {
	if d.made() {
		d.d.ResetPeak()
	}
}

// Close waits for running work, ends background compiles and frees the memory. From then on the
// device's tensors are ErrClosed. Closing twice is harmless.
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

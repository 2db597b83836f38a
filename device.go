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

// OpenOptions opens a device, with the errors of [Open]. The zero Options open the device that
// MILLRACE_DEVICE describes, or the CPU. Fields that are set take precedence over that variable.
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

// Scope is [Stream.Scope] on the default stream, and returns f's error.
func (d *Device) Scope(f func(sc *Scope) error) error { return d.DefaultStream().Scope(f) }

// Sync is [Stream.Sync] for all streams of the device: it runs the recorded ops of all of them
// and waits. It returns the first error of any stream that has not been returned yet. Ranks that are
// goroutines with one device sync their streams instead, or they wait for each other's collectives.
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

// Wait returns when all submitted work of all streams is done and no background compile runs. It is
// for measurements. It returns an error of the driver; errors of ops are carried by tensors. Like
// Close, it waits for collectives: ranks that share a device should not call it.
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
// device's tensors are ErrClosed. Closing twice is harmless. A collective of package dist is running
// work too: it may wait for other ranks, up to the Deadline of its World.
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

var errNilDevice = errors.New("the device, stream or scope is nil or was not opened: see Open, Device.NewStream and Stream.Scope")

// Stream is a sequence of ops on one device. It is safe for concurrent use, and the ops of one
// goroutine stay in order. If only one goroutine uses a stream, the order of all its ops is
// fixed, and so are the kernels that they become.
//
// An op's result belongs to the stream of the first operand that is not on the default stream,
// else to the default stream. A result of shared weights and a request's data therefore belongs
// to the request's stream. Operands may belong to any streams of the device.
type Stream struct {
	s *stream.Stream
}

// made reports that a device made s, so that s is neither nil nor the zero Stream.
func (s *Stream) made() bool { return s != nil && s.s != nil }

// Device returns the device that the stream is on. Calls may return different pointers for one
// device.
func (s *Stream) Device() *Device {
	if !s.made() {
		return nil
	}
	return &Device{s.s.Device()}
}

// Sync runs the recorded ops and waits until they are done, collectives of package dist too, or
// until ctx is; ctx may be nil. It returns the first error of the stream that no reader, Err or Sync
// has returned yet.
func (s *Stream) Sync(ctx context.Context) error {
	if !s.made() {
		return errNilDevice
	}
	return s.s.Sync(ctx)
}

// Err returns the first error of the stream that no reader, Err or Sync has returned yet. It runs
// nothing.
func (s *Stream) Err() error {
	if !s.made() {
		return errNilDevice
	}
	return s.s.Err()
}

// Close runs the recorded ops and ends the stream. Recording to it is then ErrClosed; its tensors
// stay readable. The default stream is closed with its device.
func (s *Stream) Close() error {
	if !s.made() {
		return nil
	}
	return s.s.Close()
}

// Place is where a tensor is made: a [*Device] (its default stream), a
// [*Stream] or a [*Scope]. Functions without "On" in their name use the
// default device's default stream; see [Default].
type Place interface {
	place() (at, error)
}

// at is where a tensor is made. The tensor is a step of a composite if steps is not nil.
type at struct {
	stream.Place
	steps *steps
}

func (p at) place() (at, error) {
	if p.S == nil {
		return p, errNilPlace
	}
	return p, nil
}

func (d *Device) place() (at, error) {
	if !d.made() {
		return at{}, errNilPlace
	}
	return at{Place: stream.Place{S: d.d.Default()}}, nil
}

func (s *Stream) place() (at, error) {
	if !s.made() {
		return at{}, errNilPlace
	}
	return at{Place: stream.Place{S: s.s}}, nil
}

func (sc *Scope) place() (at, error) {
	if !sc.made() {
		return at{}, errNilPlace
	}
	if err := sc.sc.Ended(); err != nil {
		return at{Place: stream.Place{S: sc.sc.Home()}}, err
	}
	return at{Place: stream.Place{S: sc.sc.Home(), Scope: sc.sc}}, nil
}

// placeOf returns the place that p names. If there is an error, it also returns the stream, if p
// names one, so that the stream can report the error.
func placeOf(p Place) (at, error) {
	if p == nil {
		return at{}, errNilPlace
	}
	return p.place()
}

// anywhere is the default device as a place. The device is opened when it is first used.
type anywhere struct{}

func (anywhere) place() (at, error) {
	d, err := Default()
	if err != nil {
		return at{}, err
	}
	return d.place()
}

// Scope releases, at its end, the tensors that descend from it: the tensors made on it, as in
// FromSliceOn(sc, …) or t.To(sc), and every result of an op with an operand of the scope. It does
// not release other tensors, even if the same goroutine made them meanwhile. A result with
// operands of several scopes belongs to the innermost one. Making a tensor or a scope on a scope
// that has ended is ErrClosed.
type Scope struct {
	sc *stream.Scope
}

// made reports that a stream opened sc, so that sc is neither nil nor the zero Scope.
func (sc *Scope) made() bool { return sc != nil && sc.sc != nil }

// Scope calls f with a new scope and ends the scope when f returns or panics. It returns f's
// error. To put a scope inside another one, call Scope on the outer one.
//
// The memory of tensors in a scope is reused at once, and kernels need not write results that
// only the scope could request. A step of a loop inside a Scope therefore runs without the
// collector's help.
func (s *Stream) Scope(f func(sc *Scope) error) error {
	if !s.made() {
		return errNilDevice
	}
	return (&Scope{s.s.OpenScope()}).run(f)
}

// Scope is [Stream.Scope] for a scope inside this one, on the same stream. Results with operands of
// both scopes belong to the inner one. A tensor that the inner scope keeps moves to the outer one.
// It returns f's error, or one of its own if this scope has ended.
func (sc *Scope) Scope(f func(sc *Scope) error) error {
	if !sc.made() {
		return errNilDevice
	}
	if err := sc.sc.Ended(); err != nil {
		return failure("scope", err)
	}
	return (&Scope{sc.sc.Inner()}).run(f)
}

func (sc *Scope) run(f func(sc *Scope) error) error {
	defer sc.sc.Close()
	if f == nil {
		return errNilFunc
	}
	return f(sc)
}

// Keep moves t from the scope to the enclosing one, or out of all scopes if there is none, and
// returns t itself. A tensor of another scope stays in that scope. It never fails: a nil scope or
// tensor changes nothing.
func (sc *Scope) Keep(t *Tensor) *Tensor {
	if sc.made() && t.made() {
		sc.sc.Keep(&t.v)
	}
	return t
}

// Stream returns the stream that the scope was opened on.
func (sc *Scope) Stream() *Stream {
	if !sc.made() {
		return nil
	}
	return &Stream{sc.sc.Home()}
}

package gomlxbackend

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/notimplemented"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/pkg/errors"
)

// Name is what the backend is registered as: the part of GOMLX_BACKEND before
// the colon.
const Name = "millrace"

// maxRank is the most axes a Millrace tensor has.
const maxRank = 8

func init() { compute.Register(Name, New) }

// Backend is one open Millrace device behind GoMLX's interface. It is safe for
// concurrent use.
type Backend struct {
	dev    *millrace.Device
	caps   compute.Capabilities
	closed atomic.Bool

	mu     sync.Mutex
	idle   []*millrace.Stream          // streams that no Execute uses now
	tables map[string]*millrace.Tensor // constants of the backend's own, for all graphs
}

var _ compute.Backend = (*Backend)(nil)

// New opens the device that config describes: a driver's name, options as in
// millrace.Options, or both, separated by commas: "", "cpu", "threads=2",
// "cpu,threads=2,compile=wait". Without a name it is the device that
// MILLRACE_DEVICE names, or the CPU. An unknown key is an error that lists the
// keys there are; an unknown or missing driver one that says what to import. "help" opens
// nothing: its error has a line for each option.
func New(config string) (compute.Backend, error) {
	if strings.TrimSpace(config) == help {
		return nil, errors.New(helpText())
	}
	o, err := parseConfig(config)
	if err != nil {
		return nil, errors.WithMessagef(err, "backend %q: config %q", Name, config)
	}
	dev, err := millrace.OpenOptions(o)
	if err != nil {
		return nil, errors.WithMessagef(err, "backend %q: config %q", Name, config)
	}
	b := &Backend{dev: dev, caps: compute.Capabilities{
		Functions:   true,
		DynamicAxes: true,
		Operations:  maps.Clone(operations),
		DTypes:      map[dtypes.DType]bool{},
	}}
	for dt, row := range dtypeRows {
		if dev.Supports(row.dt) {
			b.caps.DTypes[dt] = true
		}
	}
	for dt, row := range complexRows {
		if b.caps.DTypes[row.part] {
			b.caps.DTypes[dt] = true
		}
	}
	nativeShapes(&b.caps, b.sizeDType())
	if !b.caps.DTypes[compute.RNGStateShape.DType] {
		delete(b.caps.Operations, compute.OpTypeRNGBitGenerator)
	}
	return b, nil
}

// help is the configuration that asks for a list of options.
const help = "help"

// helpText says what a configuration may be.
func helpText() string {
	return fmt.Sprintf(`backend %q: a configuration is a device, options as key=value, or both, separated by commas:
  GOMLX_BACKEND=%[1]s:cpu,threads=2,compile=wait
The devices of this program are %[2]s; without one it is MILLRACE_DEVICE's, or cpu. Options:
%[3]s`, Name, strings.Join(millrace.Drivers(), ", "), device.OptionsHelp())
}

// parseConfig turns "cpu,threads=2" into what millrace.ParseOptions reads. A
// first part that is an option of a device is not a device's name.
func parseConfig(config string) (millrace.Options, error) {
	config = strings.TrimSpace(config)
	if config == "" {
		return millrace.Options{}, nil
	}
	first, rest, more := strings.Cut(config, ",")
	if _, err := millrace.ParseOptions("cpu:" + first); err == nil || strings.Contains(first, "=") {
		o, err := millrace.ParseOptions("cpu:" + config)
		o.Device = ""
		return o, err
	}
	if more {
		first += ":" + rest
	}
	return millrace.ParseOptions(first)
}

// Name is "millrace".
func (b *Backend) Name() string { return Name }

// String is Name.
func (b *Backend) String() string { return Name }

// Description names the device and what it computes with.
func (b *Backend) Description() string {
	return fmt.Sprintf("Millrace on %s (%s)", b.dev.Name(), b.dev.Description())
}

// NumDevices is 1: a Backend is one device.
func (b *Backend) NumDevices() int { return 1 }

// DeviceDescription is the adapter or the instruction set.
func (b *Backend) DeviceDescription(compute.DeviceNum) string { return b.dev.Description() }

// Capabilities lists the ops there are, and the dtypes that the device has.
func (b *Backend) Capabilities() compute.Capabilities { return b.caps.Clone() }

// Builder starts a computation.
func (b *Backend) Builder(name string) compute.Builder {
	bd := &Builder{Builder: notimplemented.Builder{ErrFn: missing}, backend: b, name: name, names: map[string]bool{compute.MainName: true}, small: map[string]*Node{}}
	bd.main = bd.function(compute.MainName, nil)
	return bd
}

// Finalize closes the device. Buffers of the backend are of no use afterwards.
func (b *Backend) Finalize() {
	if !b.closed.Swap(true) {
		// The interface has no place for an error, and the device is closed anyway.
		_ = b.dev.Close()
	}
}

// IsFinalized reports whether Finalize was called.
func (b *Backend) IsFinalized() bool { return b.closed.Load() }

// Device is the Millrace device of the backend, for its counters.
func (b *Backend) Device() *millrace.Device { return b.dev }

// stream takes a stream out of those that are idle, or makes one: each Execute
// has its own, so that what concurrent ones record does not mix.
func (b *Backend) stream() *millrace.Stream {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.idle); n > 0 {
		s := b.idle[n-1]
		b.idle = b.idle[:n-1]
		return s
	}
	return b.dev.NewStream()
}

func (b *Backend) giveBack(s *millrace.Stream) {
	b.mu.Lock()
	b.idle = append(b.idle, s)
	b.mu.Unlock()
}

// usable reports what is wrong with a request for a tensor on a device.
func (b *Backend) usable(what string, num compute.DeviceNum, shape shapes.Shape) error {
	if b.closed.Load() {
		return errors.Errorf("%s: backend %q was finalized", what, Name)
	}
	if num != 0 {
		return errors.Errorf("%s of %s: backend %q has device 0 only, not %d", what, shape, Name, num)
	}
	return b.holds(what, shape)
}

// holds reports shapes that no tensor of the device can have.
func (b *Backend) holds(what string, shape shapes.Shape) error {
	switch {
	case !shape.Ok() || shape.IsTuple():
		return errors.Errorf("%s: invalid shape %s", what, shape)
	case !b.caps.DTypes[shape.DType]:
		return errors.Wrapf(compute.ErrNotImplemented, "%s of %s: backend %q on %s has no %s", what, shape, Name, b.dev.Name(), shape.DType)
	case shape.IsDynamic():
		return errors.Errorf("%s of %s: the axes must have sizes", what, shape)
	case shape.Rank() > maxRank && (shape.DType.IsPacked() || shape.DType.IsComplex()):
		return errors.Wrapf(compute.ErrNotImplemented, "%s of %s: backend %q has at most %d axes of %s", what, shape, Name, maxRank, shape.DType)
	}
	elements := 1
	for _, d := range shape.Dimensions {
		switch {
		case d < 0:
			return errors.Errorf("%s: %v has a negative dimension", what, shape.Dimensions)
		case d > 0 && elements > math.MaxInt/16/d && !slices.Contains(shape.Dimensions, 0):
			return errors.Errorf("%s: %v has more elements than there are addresses", what, shape.Dimensions)
		}
		elements *= d
	}
	return nil
}

// missing is the error of ops that the backend does not have.
func missing(op compute.OpType) error {
	return errors.Wrapf(compute.ErrNotImplemented, "backend %q has no %s", Name, op)
}

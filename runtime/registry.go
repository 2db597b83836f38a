package runtime

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Driver opens devices of one kind.
type Driver interface {
	// Open starts a device. If the machine has no such device, it returns an error that wraps
	// ErrNoDriver and says how to get what is missing.
	Open(Config) (Device, error)
	// Probe describes in one line the device that Open would start, or returns the error that Open
	// would return.
	Probe() (string, error)
}

// Isolator is a Driver that obeys the options of Config that are for GPUs. The libraries
// that it calls may crash a process; with Isolate they crash a separate one.
type Isolator interface{ Isolates() }

// Detailer is a Driver that describes the adapters of this machine at length, best first.
type Detailer interface{ Details() ([]Adapter, error) }

// Adapter is a device that a driver could open, for people.
type Adapter struct {
	Name       string
	Properties []Property
}

// Property is a fact about an adapter, as text.
type Property struct{ Name, Value string }

var registry struct {
	sync.Mutex
	drivers map[string]Driver
}

// imports maps the name of each driver of this module to the package that registers it.
var imports = map[string]string{
	"cpu":    "github.com/millrace-go/millrace/runtime/cpu",
	"webgpu": "github.com/millrace-go/millrace/runtime/webgpu",
	"opengl": "github.com/millrace-go/millrace/runtime/opengl",
	"vulkan": "github.com/millrace-go/millrace/runtime/vulkan",
	"null":   "github.com/millrace-go/millrace/runtime/null",
}

// Register makes a driver available by name. It panics if d is nil or the name is taken, which
// only happens in a program with two drivers of one name.
func Register(name string, d Driver) {
	registry.Lock()
	defer registry.Unlock()
	if d == nil {
		panic("millrace/runtime: Register of a nil driver " + name)
	}
	if _, dup := registry.drivers[name]; dup {
		panic("millrace/runtime: Register called twice for driver " + name)
	}
	if registry.drivers == nil {
		registry.drivers = make(map[string]Driver)
	}
	registry.drivers[name] = d
}

// Drivers lists the registered names in sorted order.
func Drivers() []string {
	registry.Lock()
	defer registry.Unlock()
	return slices.Sorted(maps.Keys(registry.drivers))
}

// Lookup finds a driver. Its error names the import that adds the driver.
func Lookup(name string) (Driver, error) {
	registry.Lock()
	d := registry.drivers[name]
	registry.Unlock()
	if d != nil {
		return d, nil
	}
	if path, ok := imports[name]; ok {
		return nil, fmt.Errorf("%w %q: add the import _ %q (drivers here: %s)", ErrNoDriver, name, path, strings.Join(Drivers(), ", "))
	}
	return nil, fmt.Errorf("%w %q (drivers here: %s)", ErrNoDriver, name, strings.Join(Drivers(), ", "))
}

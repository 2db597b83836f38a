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
	// Open starts a device. It returns an error that says how to get what is
	// missing, wrapping ErrNoDriver, where the machine has no such device.
	Open(Config) (Device, error)
	// Probe says in one line what Open would find, or the error it would give.
	Probe() (string, error)
}

// Isolator is a Driver that heeds Config.Isolate, and Config.Subgroups: what it calls may end a process, and
// then ends another.
type Isolator interface{ Isolates() }

var registry struct {
	sync.Mutex
	drivers map[string]Driver
}

// imports names the packages that bring the drivers of this module.
var imports = map[string]string{
	"cpu":    "github.com/millrace-go/millrace/runtime/cpu",
	"webgpu": "github.com/millrace-go/millrace/runtime/webgpu",
	"opengl": "github.com/millrace-go/millrace/runtime/opengl",
	"null":   "github.com/millrace-go/millrace/runtime/null",
}

// Register makes a driver available by name. It panics if d is nil or the
// name is taken, which only a program with two drivers of one name can see.
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

// Drivers lists the registered names, sorted.
func Drivers() []string {
	registry.Lock()
	defer registry.Unlock()
	return slices.Sorted(maps.Keys(registry.drivers))
}

// Lookup finds a driver. The error names the import that would bring it.
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

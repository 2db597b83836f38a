// Package gpudriver is what GPU drivers are to the engine: how one is opened, in this
// process or in one of its own, and what there is to open.
//
// Engine part: no compatibility promise; use package millrace.
package gpudriver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/internal/gpuchild"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// Driver is a runtime.Driver of an API.
type Driver struct {
	Name    string // begins its errors
	HowTo   string // what to do about a machine without a device
	Dialect *shader.Dialect

	// Open opens the best adapter whose name contains a word.
	Open     func(adapter string) (gpurun.Device, error)
	Adapters func() ([]gpurun.Info, error) // best first
	// Brought, where set, opens what the program has brought, or gives nil.
	Brought func(c runtime.Config) (gpurun.Device, error)
}

// Register makes the driver known. In a process that was started for an isolated device
// of it, it does not return.
func Register(d Driver) {
	gpuchild.Serve(d.Name, d.Open)
	runtime.Register(d.Name, opener{d})
}

// opener is a Driver as the engine knows it.
type opener struct{ Driver }

// Isolates: its devices may have processes of their own.
func (opener) Isolates() {}

// Open starts what the program brought, else the best adapter whose name contains
// c.Adapter.
func (d opener) Open(c runtime.Config) (runtime.Device, error) {
	if d.Brought != nil {
		g, err := d.Brought(c)
		if err != nil {
			return nil, fmt.Errorf("%w %q: %w", runtime.ErrNoDriver, d.Name, err)
		}
		if g != nil {
			return gpurun.New(d.Name, g, d.Dialect, c), nil
		}
	}
	open := d.Driver.Open
	if c.Isolate {
		open = func(adapter string) (gpurun.Device, error) { return gpuchild.Open(d.Name, adapter) }
	}
	g, err := open(c.Adapter)
	if err != nil {
		return nil, d.none(err)
	}
	return gpurun.New(d.Name, g, d.Dialect, c), nil
}

// Probe names the adapters, best first.
func (d opener) Probe() (string, error) {
	list, err := d.Adapters()
	if err != nil {
		return "", d.none(err)
	}
	names := make([]string, len(list))
	for i, a := range list {
		names[i] = fmt.Sprintf("%s (%s)", a.Name, a.Kind)
	}
	return strings.Join(names, ", "), nil
}

func (d opener) none(err error) error {
	if errors.Is(err, gpuchild.ErrProcess) {
		return fmt.Errorf("%w %q: %w", runtime.ErrNoDriver, d.Name, err)
	}
	return fmt.Errorf("%w %q: %v; %s", runtime.ErrNoDriver, d.Name, err, d.HowTo)
}

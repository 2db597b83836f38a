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
	Name    string // prefix of its errors
	HowTo   string // advice for a machine without a device
	Dialect *shader.Dialect

	// Open opens the best adapter whose name contains a word.
	Open     func(adapter string) (gpurun.Device, error)
	Adapters func() ([]gpurun.Info, error) // best first
	// Properties, if set, is what the API knows of an adapter beyond its Info, by its place in Adapters.
	Properties func(adapter int) []runtime.Property
	// Brought, if set, opens a device of the program's own, or returns nil.
	Brought func(c runtime.Config) (gpurun.Device, error)
}

// Register registers the driver. In a process that was started for an isolated device of the
// driver, Register does not return.
func Register(d Driver) {
	gpuchild.Serve(d.Name, d.Open)
	runtime.Register(d.Name, opener{d})
}

// opener is a Driver as the engine sees it.
type opener struct{ Driver }

// Isolates marks that its devices may run in other processes.
func (opener) Isolates() {}

// Open opens the program's own device, else the best adapter whose name contains c.Adapter.
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

// Details describes the adapters, best first.
func (d opener) Details() ([]runtime.Adapter, error) {
	list, err := d.Adapters()
	if err != nil {
		return nil, d.none(err)
	}
	adapters := make([]runtime.Adapter, len(list))
	for i := range list {
		adapters[i] = runtime.Adapter{Name: list[i].Name, Properties: properties(&list[i])}
		if d.Properties != nil {
			adapters[i].Properties = append(adapters[i].Properties, d.Properties(i)...)
		}
	}
	return adapters, nil
}

// properties are what all APIs know of an adapter.
func properties(a *gpurun.Info) []runtime.Property {
	l := &a.Limits
	subgroup := "none that shaders can use"
	if l.Subgroup > 0 {
		subgroup = fmt.Sprintf("%d invocations", l.Subgroup)
	}
	return []runtime.Property{
		{Name: "kind", Value: a.Kind},
		{Name: "driver", Value: a.Driver},
		{Name: "vendor, model", Value: fmt.Sprintf("%#x, %#x", a.Vendor, a.Model)},
		{Name: "largest buffer", Value: fmt.Sprintf("%d bytes, of which a shader's binding sees %d", l.Buffer, l.Binding)},
		{Name: "workgroup", Value: fmt.Sprintf("%d invocations, %d bytes", l.GroupSize, l.WorkgroupStorage)},
		{Name: "dispatch", Value: fmt.Sprintf("%d workgroups along each dim, %d storage buffers", l.Groups, l.StorageBuffers)},
		{Name: "subgroup", Value: subgroup},
	}
}

func (d opener) none(err error) error {
	if errors.Is(err, gpuchild.ErrProcess) {
		return fmt.Errorf("%w %q: %w", runtime.ErrNoDriver, d.Name, err)
	}
	return fmt.Errorf("%w %q: %v; %s", runtime.ErrNoDriver, d.Name, err, d.HowTo)
}

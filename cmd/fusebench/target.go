package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/sniff"
)

// targets returns the devices to run on: the requested ones, or all that are present. A requested
// device that is missing is an error. Other missing devices are reported on stderr.
// MILLRACE_REQUIRE names devices that must be present.
func targets(c *config, io streams) ([]string, error) {
	if err := c.usePlans(); err != nil {
		return nil, err
	}
	if len(c.devices) > 0 {
		for _, name := range c.devices {
			if err := present(io, name); err != nil {
				return nil, err
			}
		}
		return c.devices, nil
	}
	required := strings.Split(os.Getenv("MILLRACE_REQUIRE"), ",")
	var names []string
	for _, name := range millrace.Drivers() {
		err := present(io, name)
		if err == nil {
			names = append(names, name)
			continue
		}
		if slices.Contains(required, name) {
			return nil, err
		}
		fmt.Fprintf(io.err, "without %s: %v\n", name, err)
	}
	if len(names) == 0 {
		return nil, errors.New("no device is present")
	}
	return names, nil
}

// usePlans makes all devices use the requested bundle.
func (c *config) usePlans() error {
	if c.plans == "" {
		return nil
	}
	bundle, err := sniff.ReadFile(c.plans)
	if err != nil {
		return err
	}
	if err := millrace.UsePlans(bundle); err != nil {
		return fmt.Errorf("%s: %w", c.plans, err)
	}
	return nil
}

// present opens and closes a device. It reports an option that the device falls back from.
func present(io streams, name string) error {
	o, err := millrace.ParseOptions(name)
	if err != nil {
		return err
	}
	o.Trace = &millrace.Trace{Error: func(err error) { fmt.Fprintf(io.err, "%s: %v\n", name, err) }}
	d, err := millrace.OpenOptions(o)
	if err != nil {
		return err
	}
	return d.Close()
}

// A bench is one device opened for one mode, with its own copies of the inputs. Counters, plans
// and memory of the modes are therefore separate.
type bench struct {
	mode string
	dev  *millrace.Device
	held map[*array]*millrace.Tensor
	flat *millrace.Tensor // for plain copies larger than any input
}

func openBench(c *config, device, mode string) (*bench, error) {
	o, err := c.options(device, mode)
	if err != nil {
		return nil, err
	}
	dev, err := millrace.OpenOptions(o)
	if err != nil {
		return nil, err
	}
	return &bench{mode: mode, dev: dev, held: map[*array]*millrace.Tensor{}}, nil
}

// inputs returns a problem's inputs on the device.
func (b *bench) inputs(p *problem) ([]*millrace.Tensor, error) {
	var xs []*millrace.Tensor
	for _, a := range p.inputs {
		x := b.held[a]
		if x == nil {
			x = a.upload(b.dev)
			if err := x.Eval(); err != nil {
				return nil, err
			}
			b.held[a] = x
		}
		xs = append(xs, x)
	}
	return xs, nil
}

// plain returns a tensor of n elements for plain copies: a part of a large enough input, or new
// memory.
func (b *bench) plain(n int, dt dtype) (*millrace.Tensor, error) {
	from := b.flat
	for _, x := range b.held {
		if x.Len() >= n && (from == nil || x.Len() < from.Len()) {
			from = x
		}
	}
	if from == nil || from.Len() < n {
		if b.flat != nil {
			b.flat.Release()
		}
		from = millrace.OnesOn(b.dev, dt.DType, n)
		if err := from.Eval(); err != nil {
			return nil, err
		}
		b.flat = from
	}
	return from.Reshape(-1).Slice(millrace.R(0, n)), nil
}

// once times one run: the program on the inputs, inside a scope, until the result is in memory.
func (b *bench) once(run program, inputs []*millrace.Tensor) (time.Duration, error) {
	xs := make([]*millrace.Tensor, len(inputs))
	start := time.Now()
	var took time.Duration
	err := b.dev.Scope(func(sc *millrace.Scope) error {
		for i, x := range inputs {
			xs[i] = x.To(sc)
		}
		err := run(xs).Eval()
		took = time.Since(start)
		return err
	})
	return took, err
}

func (b *bench) close() error {
	for _, x := range b.held {
		x.Release()
	}
	return b.dev.Close()
}

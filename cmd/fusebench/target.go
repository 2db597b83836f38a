package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/millrace-go/millrace"
)

// targets are the devices to run on: those asked for, or every one present.
// One that was asked for and is missing is an error; one that is only missing
// is told of on stderr. MILLRACE_REQUIRE names devices that must be present.
func targets(c *config, io streams) ([]string, error) {
	if len(c.devices) > 0 {
		for _, name := range c.devices {
			if err := present(name); err != nil {
				return nil, err
			}
		}
		return c.devices, nil
	}
	required := strings.Split(os.Getenv("MILLRACE_REQUIRE"), ",")
	var names []string
	for _, name := range millrace.Drivers() {
		err := present(name)
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

// present opens and closes a device.
func present(name string) error {
	d, err := millrace.Open(name)
	if err != nil {
		return err
	}
	return d.Close()
}

// A bench is one device opened for one mode, with its own copy of the input:
// counters, plans and memory of the modes stay apart.
type bench struct {
	mode string
	dev  *millrace.Device
	x    *millrace.Tensor
}

func openBench(c *config, device, mode string, input func(*millrace.Device) *millrace.Tensor) (*bench, error) {
	o, err := c.options(device, mode)
	if err != nil {
		return nil, err
	}
	dev, err := millrace.OpenOptions(o)
	if err != nil {
		return nil, err
	}
	b := &bench{mode: mode, dev: dev, x: input(dev)}
	if err := b.x.Eval(); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return b, nil
}

func (b *bench) close() error {
	b.x.Release()
	return b.dev.Close()
}

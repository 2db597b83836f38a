package main

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/millrace-go/millrace"
)

// driver checks the name of a driver, whether this build has it or not.
func driver(name string) error {
	return wordOf(slices.Compact(slices.Sorted(slices.Values(append(millrace.Drivers(), "cpu", "opengl", "vulkan", "webgpu"))))...)(name)
}

func setupPlansExport() ([]cli.Flag, action) {
	var f millrace.PlanFilter
	var since time.Duration
	var out string
	flags := []cli.Flag{
		&cli.StringFlag{Name: "device", Destination: &f.Device, Validator: driver, Usage: "`driver` whose entries to export, such as cpu (default: all)"},
		&cli.DurationFlag{Name: "since", Destination: &since, Validator: lasting(true), DefaultText: "all", Usage: "only entries used within this `time` before now, such as 24h"},
		&cli.StringFlag{Name: "o", Destination: &out, Validator: writable, Usage: "`file` to write"},
	}
	return flags, func(io streams, args []string) error {
		switch {
		case out == "":
			return usageError("-o is missing: the file to write")
		case since > 0:
			f.Since = time.Now().Add(-since)
		}
		dir, err := planPath(args)
		if err != nil {
			return err
		}
		f.Cache = dir
		var buf bytes.Buffer
		if err := millrace.ExportPlans(&buf, f); err != nil {
			return err
		}
		if err := deliverBytes(io.out, buf.Bytes(), out); err != nil {
			return err
		}
		fmt.Fprintf(io.err, "%s: %d bytes\n", out, buf.Len())
		return nil
	}
}

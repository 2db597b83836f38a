package main

import (
	"fmt"
	goio "io"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/runtime"
)

// setupDevices sets up fusebench devices.
func setupDevices() ([]cli.Flag, action) {
	var verbose bool
	flags := []cli.Flag{&cli.BoolFlag{Name: "v", Destination: &verbose, Usage: "also show how the devices compute with float32, and what drivers say of their adapters"}}
	return flags, func(io streams, args []string) error {
		if len(args) > 0 {
			return usageError("unexpected %q", args[0])
		}
		var open []*millrace.Device
		defer func() {
			for _, d := range open {
				d.Close()
			}
		}()
		tw := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
		for _, name := range millrace.Drivers() {
			state, what := "present", ""
			d, err := millrace.Open(name)
			if err != nil {
				state, what = "missing", err.Error()
			} else {
				what = d.Description()
				open = append(open, d)
			}
			fmt.Fprintf(tw, "%s\t%s\t%s\n", name, state, strings.ReplaceAll(what, "\n", "; "))
		}
		state, what := native()
		fmt.Fprintf(tw, "machine code\t%s\t%s\n", state, what)
		state, what = compiler()
		fmt.Fprintf(tw, "C compiler\t%s\t%s\n", state, what)
		state, what = cgo()
		fmt.Fprintf(tw, "cgo\t%s\t%s\n", state, what)
		if err := tw.Flush(); err != nil || !verbose {
			return err
		}
		fmt.Fprintln(io.out)
		if err := writeFloats(io.out, open); err != nil {
			return err
		}
		return writeAdapters(io.out)
	}
}

// writeAdapters writes what drivers say of their adapters.
func writeAdapters(out goio.Writer) error {
	for _, name := range millrace.Drivers() {
		driver, err := runtime.Lookup(name)
		if err != nil {
			return err
		}
		x, ok := driver.(runtime.Detailer)
		if !ok {
			continue
		}
		adapters, err := x.Details()
		if err != nil {
			continue // the table of devices has the reason
		}
		for _, a := range adapters {
			fmt.Fprintf(out, "\n%s: %s\n", name, a.Name)
			tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			for _, p := range a.Properties {
				fmt.Fprintf(tw, "  %s\t%s\n", p.Name, p.Value)
			}
			if err := tw.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// native says what machine code the process itself can make.
func native() (state, what string) {
	level := machine.Level()
	switch env := os.Getenv("MILLRACE_COMPILE"); {
	case env == "off" || env == "c":
		return "off", "MILLRACE_COMPILE=" + env
	case machine.LevelError() != nil:
		return "unknown", machine.LevelError().Error()
	case level == machine.None:
		return "missing", "none: this system and processor have none, or MILLRACE_LEVEL forbids it (on arm64 it must be neon)"
	}
	return "present", "made in the process, for " + level.String()
}

// compiler looks for a C compiler as the CPU device does.
func compiler() (state, what string) {
	if env := os.Getenv("MILLRACE_COMPILE"); env == "off" || env == "native" {
		return "off", "MILLRACE_COMPILE=" + env
	}
	for _, name := range []string{os.Getenv("CC"), "cc", "gcc", "clang"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return "present", path
		}
	}
	return "missing", "kernels without machine code are interpreted; install gcc or clang to compile them (Debian: apt install gcc libc6-dev)"
}

// cgo says how this program was built.
func cgo() (state, what string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown", "this program carries no build information"
	}
	for _, s := range info.Settings {
		if s.Key == "CGO_ENABLED" && s.Value == "1" {
			return "on", "built with cgo"
		}
	}
	return "off", "built without cgo, so C, WebGPU and OpenGL are missing; build with CGO_ENABLED=1 and a C compiler"
}

package main

import (
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/plancache/lookup"
	"github.com/millrace-go/millrace/stream"
)

// setupPlansVerify sets up the command that checks entries and lists those of no use. Such
// entries make the command fail, except those of another version in a cache: older programs left
// them, and prune removes them.
func setupPlansVerify() ([]cli.Flag, action) {
	var format, device string
	flags := []cli.Flag{
		formatFlag(&format),
		&cli.StringFlag{Name: "device", Destination: &device, Usage: "`device` that must be able to use the entries for its driver, such as webgpu"},
	}
	return flags, func(io streams, paths []string) error {
		if len(paths) == 0 {
			return usageError("name cache directories or bundles")
		}
		unfit := func(kind, scope string) string { return "" }
		if device != "" {
			d, err := openEngine(device)
			if err != nil {
				return err
			}
			defer d.Close()
			unfit = d.Unfit
		}
		bad, checked, failed := []planRow{}, 0, 0
		for _, path := range paths {
			all, err := readSource(path, nil)
			if err != nil {
				return err
			}
			checked += len(all)
			for i := range all {
				row := all[i].row()
				if row.State == stateOK && lookup.Bundled(row.Kind) {
					if why := unfit(row.Kind, all[i].scope()); why != "" {
						row.State, row.Why = stateForeign, why
					}
				}
				if row.State == stateOK {
					continue
				}
				bad = append(bad, row)
				if row.State == stateDamaged || all[i].inBundle() || device != "" {
					failed++
				}
			}
		}
		if len(bad) == 0 && format == "table" {
			_, err := fmt.Fprintf(io.out, "%d entries, all of use\n", checked)
			return err
		}
		if err := planFormats[format](io.out, bad); err != nil || failed == 0 {
			return err
		}
		return fmt.Errorf("%d of %d entries are damaged or of no use", failed, checked)
	}
}

// openEngine opens a device as package millrace does, without a cache.
func openEngine(name string) (*stream.Device, error) {
	o, err := device.ParseOptions(name)
	if err != nil {
		return nil, err
	}
	o.Cache = plancache.Off
	return stream.Open(o)
}

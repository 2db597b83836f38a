package main

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v3"
)

func setupPlansPrune() ([]cli.Flag, action) {
	var kinds list
	var format string
	var older time.Duration
	var dry bool
	flags := []cli.Flag{
		kindsFlag(&kinds), formatFlag(&format),
		&cli.DurationFlag{Name: "older", Destination: &older, Validator: lasting(true), HideDefault: true, Usage: "also remove entries that were not used for this `time`, such as 720h"},
		&cli.BoolFlag{Name: "n", Destination: &dry, Usage: "remove nothing, only list the entries to remove"},
	}
	return flags, func(io streams, args []string) error {
		dir, err := planPath(args)
		if err != nil {
			return err
		}
		all, err := readSource(dir, kinds)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(r remembered) bool {
			return r.judge().state == stateOK && (older == 0 || time.Since(r.Used) <= older)
		})
		if !dry {
			if err := removeEntries(dir, all); err != nil {
				return err
			}
		}
		return planFormats[format](io.out, planRows(all))
	}
}

// removeEntries removes entries of a cache. An entry that another process removed meanwhile
// counts as removed.
func removeEntries(dir string, all []remembered) error {
	c, err := openCache(dir)
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range all {
		if err := c.Remove(all[i].Name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

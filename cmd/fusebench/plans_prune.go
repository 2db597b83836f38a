package main

import (
	"errors"
	"flag"
	"os"
	"slices"
	"time"
)

func setupPlansPrune(fs *flag.FlagSet) func(streams, []string) error {
	var kinds list
	var format string
	kindsFlag(fs, &kinds)
	formatFlag(fs, &format)
	older := fs.Duration("older", 0, "remove also what was not used for this `time`, such as 720h")
	dry := fs.Bool("n", false, "remove nothing, list only what would be removed")
	return func(io streams, args []string) error {
		if err := checkFormat(format); err != nil {
			return err
		}
		if *older < 0 {
			return usageError("-older %v is negative", *older)
		}
		dir, err := planPath(args)
		if err != nil {
			return err
		}
		all, err := readSource(dir, kinds)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(r remembered) bool {
			return r.judge().state == stateOK && (*older == 0 || time.Since(r.Used) <= *older)
		})
		if !*dry {
			if err := removeEntries(dir, all); err != nil {
				return err
			}
		}
		return planFormats[format](io.out, planRows(all))
	}
}

// removeEntries removes entries of a cache. What others removed meanwhile is
// gone as well.
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

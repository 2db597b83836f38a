package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"
)

// The values of flags are checked when the command line is read. A bad value is therefore found
// before anything is timed.

// decimal accepts numbers as people write them: neither 1_000 nor 0x10.
var decimal = cli.IntegerConfig{Base: 10}

// The largest values of flags. A larger value is a mistake, and would take days or all memory.
const (
	maxThreads = 1024 // as the CPU device's
	maxRuns    = 1_000_000
	maxOps     = 1_000_000
	maxSteps   = 1_000_000
	maxSize    = 1 << 30
)

// from returns a check for a whole number between least and most.
func from(least, most int) func(int) error {
	return func(n int) error {
		if n < least || n > most {
			return fmt.Errorf("want a whole number from %d to %d", least, most)
		}
		return nil
	}
}

// lasting returns a check for a duration: not negative, and not zero unless zero says that it may
// be.
func lasting(zero bool) func(time.Duration) error {
	return func(d time.Duration) error {
		switch {
		case d < 0:
			return errors.New("want a time of 0 or more")
		case d == 0 && !zero:
			return errors.New("want more than 0")
		}
		return nil
	}
}

// wordOf returns a check for one of the known words.
func wordOf(known ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(known, s) {
			return fmt.Errorf("want one of %s", strings.Join(known, ", "))
		}
		return nil
	}
}

// writable checks the path of a file to write: its folder exists, and the path is no folder.
func writable(path string) error {
	if path == "" {
		return errors.New("want a file")
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return errors.New("is a folder, not a file")
	}
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", filepath.Dir(path))
	}
	return nil
}

// readable checks the path of a file to read.
func readable(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return errors.New("is a folder, not a file")
	}
	return err
}

// folder checks the path of a folder that exists or will be made.
func folder(path string) error {
	if path == "" {
		return errors.New("want a folder")
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return errors.New("is a file, not a folder")
	}
	return nil
}

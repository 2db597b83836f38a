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

// The checks of flags' values run when the command line is read, so that nothing is timed
// before a bad one is found.

// decimal has numbers written as people write them: not 1_000, nor 0x10.
var decimal = cli.IntegerConfig{Base: 10}

// The most that flags take: more is a slip, and would take days or all memory.
const (
	maxThreads = 1024 // as the CPU device's
	maxRuns    = 1_000_000
	maxOps     = 1_000_000
	maxSteps   = 1_000_000
	maxSize    = 1 << 30
)

// from checks a whole number.
func from(least, most int) func(int) error {
	return func(n int) error {
		if n < least || n > most {
			return fmt.Errorf("want a whole number from %d to %d", least, most)
		}
		return nil
	}
}

// lasting checks a time: it is not negative, and not zero where that means nothing.
func lasting(zero bool) func(time.Duration) error {
	return func(d time.Duration) error {
		switch {
		case d < 0:
			return errors.New("a time is not negative")
		case d == 0 && !zero:
			return errors.New("want more than 0")
		}
		return nil
	}
}

// wordOf checks a word.
func wordOf(known ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(known, s) {
			return fmt.Errorf("want one of %s", strings.Join(known, ", "))
		}
		return nil
	}
}

// writable checks the path of a file to write: its folder is there, and it is none.
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

// readable checks the path of a file that is read.
func readable(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return errors.New("is a folder, not a file")
	}
	return err
}

// folder checks the path of a folder that is there, or will be made.
func folder(path string) error {
	if path == "" {
		return errors.New("want a folder")
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return errors.New("is a file, not a folder")
	}
	return nil
}

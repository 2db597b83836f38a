package runtime

import "fmt"

// Absent is the driver of a build that cannot have it: opening it says why.
type Absent struct{ Name, Why string }

// Isolates: so opening it isolated says why, too.
func (Absent) Isolates() {}

// Err says why.
func (a Absent) Err() error { return fmt.Errorf("%w %q: %s", ErrNoDriver, a.Name, a.Why) }

// Open gives Err.
func (a Absent) Open(Config) (Device, error) { return nil, a.Err() }

// Probe gives Err.
func (a Absent) Probe() (string, error) { return "", a.Err() }

package runtime

import "fmt"

// Absent is the driver of a build that cannot contain the real driver. Open returns an error that
// gives the reason, Why.
type Absent struct{ Name, Why string }

// Isolates makes Absent an [Isolator]: opening it with Config.Isolate returns the same error.
func (Absent) Isolates() {}

// Err returns ErrNoDriver with the driver's name and the reason.
func (a Absent) Err() error { return fmt.Errorf("%w %q: %s", ErrNoDriver, a.Name, a.Why) }

// Open returns Err.
func (a Absent) Open(Config) (Device, error) { return nil, a.Err() }

// Probe returns Err.
func (a Absent) Probe() (string, error) { return "", a.Err() }

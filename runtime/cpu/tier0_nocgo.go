//go:build !cgo

package cpu

// nativeCode is nothing without cgo, where there is none.
type nativeCode struct{}

func (t *tier0Code) translate() error { return nil }

func (t *tier0Code) free() {}

// nativeLevel says that there are no C functions.
func nativeLevel() (int, error) { return -1, nil }

// contractLevel says that there are no contractions in C.
func contractLevel() (int, error) { return -1, nil }

func (t *tier0Code) refused() bool { return false }

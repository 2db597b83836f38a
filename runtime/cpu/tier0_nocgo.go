//go:build !cgo

package cpu

// nativeCode is nothing without cgo.
type nativeCode struct{}

func (t *tier0Prog) translate() error { return nil }

func (t *tier0Prog) free() {}

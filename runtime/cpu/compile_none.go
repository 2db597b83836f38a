//go:build !cgo || !unix

package cpu

import (
	goruntime "runtime"
)

// compiler is never created in this build: without cgo, compiled objects cannot be loaded.
type compiler struct{}

func newCompiler(*device) *compiler { return nil }

func (*compiler) want(*variant, int64, bool, bool) {}
func (*compiler) waits() bool                      { return false }
func (*compiler) forget(*program)                  {}
func (*compiler) wait()                            {}
func (*compiler) stop()                            {}
func (*compiler) unload()                          {}

func findCompiler() string { return "" }

func describe() string { return goruntime.GOARCH + " without cgo" }

func fingerprint() string { return "go" }

func processor() string { return describe() }

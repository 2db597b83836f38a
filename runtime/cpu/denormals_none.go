//go:build !cgo || !unix || !amd64

package cpu

// flushesNatively reports C that can be run by a processor which flushes as
// ir.Denormals says.
func flushesNatively() bool { return false }

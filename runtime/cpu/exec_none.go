//go:build !cgo || !unix

package cpu

import "github.com/millrace-go/millrace/ir"

const maxReduces = 16

func newExecutor(threads int, _ ir.Denormals) (executor, error) { return newGoExecutor(threads), nil }

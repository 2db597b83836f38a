//go:build !cgo || !unix

package cpu

const maxReduces = 16

func newExecutor(threads int) (executor, error) { return newGoExecutor(threads), nil }

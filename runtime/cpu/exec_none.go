//go:build !cgo || !unix

package cpu

const maxReduces = 8

func newExecutor(threads int) (executor, error) { return newGoExecutor(threads), nil }

//go:build amd64 || arm64

package vk

import "syscall"

func open(name string) (uintptr, error) {
	handle, err := syscall.LoadLibrary(name)
	return uintptr(handle), err
}

func symbol(lib uintptr, name string) (uintptr, error) {
	return syscall.GetProcAddress(syscall.Handle(lib), name)
}

// Quiet does nothing: Mesa's device-selection layer is not on Windows.
func Quiet() func() { return func() {} }

//go:build (linux || darwin) && (amd64 || arm64)

package vk

import (
	"os"
	"unsafe"

	"github.com/ebitengine/purego"
)

func open(name string) (uintptr, error) {
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func symbol(lib uintptr, name string) (uintptr, error) { return purego.Dlsym(lib, name) }

// Quiet disables Mesa's device-selection layer until the function that it returns is called. The
// layer writes to standard error if the session has no XDG_RUNTIME_DIR. It reads C's environment,
// which os.Setenv does not change in builds without cgo.
func Quiet() func() {
	const off = "NODEVICE_SELECT"
	_, set := os.LookupEnv(off)
	if set || os.Getenv("XDG_RUNTIME_DIR") != "" {
		return func() {}
	}
	setenv, err1 := purego.Dlsym(purego.RTLD_DEFAULT, "setenv")
	unsetenv, err2 := purego.Dlsym(purego.RTLD_DEFAULT, "unsetenv")
	if err1 != nil || err2 != nil {
		return func() {}
	}
	Call(setenv, uintptr(unsafe.Pointer(Text(off))), uintptr(unsafe.Pointer(Text("1"))), 0)
	return func() { Call(unsetenv, uintptr(unsafe.Pointer(Text(off)))) }
}

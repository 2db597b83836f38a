//go:build cgo && unix

package ccode

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
#include "fpenv.h"
#include "abi.h"

#if defined(__linux__) && !defined(__GLIBC__) && !defined(__ANDROID__)
#define MR_CLOSES 0
#else
#define MR_CLOSES 1
#endif

static int mr_probe_call(void *f)
{
	mr_fpenv saved = mr_fpenv_set(0);
	int r = ((int (*)(void))f)();
	mr_fpenv_restore(saved);
	return r;
}

// Objects built for fast and wrong arithmetic change the environment of the
// thread that opens them, before their probe can refuse them.
static void *mr_open(const char *path)
{
	mr_fpenv saved = mr_fpenv_set(0);
	void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	mr_fpenv_restore(saved);
	return object;
}
*/
import "C"

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"unsafe"

	"github.com/millrace-go/millrace/internal/fault"
)

// probeSymbol is exported by printed objects beside their kernels.
const probeSymbol = "mr_probe"

var errProbe = errors.New("the compiled object computes other bits: it contracts, flushes denormals or rounds differently")

// openError reports an object that the dynamic linker refused.
type openError struct{ text string }

func (e *openError) Error() string { return "dlopen: " + e.text }

// load opens an object, runs the probe of its arithmetic, and returns the functions of the given
// names.
func load(path string, names ...string) (handle unsafe.Pointer, funcs []unsafe.Pointer, err error) {
	if err := fault.Hit(fault.Load); err != nil {
		return nil, nil, err
	}
	goruntime.LockOSThread() // dlerror is per thread
	defer goruntime.UnlockOSThread()
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	object := C.mr_open(name)
	if object == nil {
		return nil, nil, &openError{C.GoString(C.dlerror())}
	}
	defer func() {
		if err != nil {
			C.dlclose(object)
		}
	}()
	probe, err := symbol(object, probeSymbol)
	if err != nil {
		return nil, nil, err
	}
	if err := probeObject(probe); err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		f, err := symbol(object, name)
		if err != nil {
			return nil, nil, err
		}
		funcs = append(funcs, f)
	}
	return object, funcs, nil
}

// probeObject calls the probe of an object.
func probeObject(probe unsafe.Pointer) error {
	if C.mr_probe_call(probe) != 0 {
		return errProbe
	}
	return nil
}

func symbol(handle unsafe.Pointer, name string) (unsafe.Pointer, error) {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	p := C.dlsym(handle, c)
	if p == nil {
		return nil, fmt.Errorf("the object has no symbol %s", name)
	}
	return p, nil
}

// unload closes an object, and reports whether the linker frees it: musl's linker keeps every
// object that it opened.
func unload(handle unsafe.Pointer) bool {
	return C.dlclose(handle) == 0 && C.MR_CLOSES != 0
}

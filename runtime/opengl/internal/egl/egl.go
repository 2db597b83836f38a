//go:build cgo && linux && !android

// Package egl makes contexts of desktop OpenGL without a window. It looks libEGL up
// when it is first needed, so that a machine without one is an error and no
// program that fails to start.
//
// Engine part: no compatibility promise; use package millrace.
package egl

/*
#cgo LDFLAGS: -ldl
#include "egl.h"
#include <stdlib.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"
)

// ErrNone is a machine on which there is no context to be had.
var ErrNone = errors.New("no OpenGL context")

var mu sync.Mutex // of what all contexts have in common

// load looks the library up.
func load() error {
	mu.Lock()
	defer mu.Unlock()
	var why *C.char
	if C.mr_egl_load(&why) != 0 {
		return fmt.Errorf("%w: no usable libEGL.so.1: %s", ErrNone, C.GoString(why))
	}
	return nil
}

// Names and numbers of the specification.
const (
	platformDevice      = 0x313F
	platformSurfaceless = 0x31DD
	extensions          = 0x3055
	vendor              = 0x3053
	none                = 0x3038
	surfaceType         = 0x3033
	pbufferBit          = 1
	renderableType      = 0x3040
	openglBit           = 8
	contextMajor        = 0x3098
	contextMinor        = 0x30FB
	contextProfile      = 0x30FD
	coreProfile         = 1
	robustAccess        = 0x31B2 // and of the extension that EGL 1.5 has it from:
	robustAccessEXT     = 0x30BF
	resetStrategy       = 0x31BD
	resetStrategyEXT    = 0x3138
	loseOnReset         = 0x31BF
	width, height       = 0x3057, 0x3056
)

var errorNames = map[int32]string{
	0x3001: "EGL_NOT_INITIALIZED", 0x3002: "EGL_BAD_ACCESS", 0x3003: "EGL_BAD_ALLOC", 0x3004: "EGL_BAD_ATTRIBUTE",
	0x3005: "EGL_BAD_CONFIG", 0x3006: "EGL_BAD_CONTEXT", 0x3007: "EGL_BAD_CURRENT_SURFACE", 0x3008: "EGL_BAD_DISPLAY",
	0x3009: "EGL_BAD_MATCH", 0x300C: "EGL_BAD_PARAMETER", 0x300D: "EGL_BAD_SURFACE", 0x300E: "EGL_CONTEXT_LOST",
}

// lastError names what the last call of this thread was refused for.
func lastError() string {
	code := int32(C.mr_egl_error())
	if name := errorNames[code]; name != "" {
		return name
	}
	return fmt.Sprintf("EGL error %#x", code)
}

// Display is where contexts are made: a device, or a platform.
type Display struct {
	Name string
	ref  unsafe.Pointer
	exts string
}

// Displays lists those that can be used: the devices that the library knows, where
// it can tell, else the platform without surfaces, else whatever it takes
// for the default. They are never closed: whoever asks for one again is given the same.
func Displays() ([]Display, error) {
	if err := load(); err != nil {
		return nil, err
	}
	mu.Lock()
	defer mu.Unlock()
	var list []Display
	var refused []string
	try := func(name string, platform uint32, native unsafe.Pointer) {
		ref := C.mr_egl_display(C.uint32_t(platform), native)
		var major, minor C.int32_t
		if ref == nil || C.mr_egl_initialize(ref, &major, &minor) == 0 {
			refused = append(refused, name+": "+lastError())
			return
		}
		list = append(list, Display{
			Name: fmt.Sprintf("%s, EGL %d.%d %s", name, major, minor, C.GoString(C.mr_egl_query(ref, vendor))),
			ref:  ref,
			exts: C.GoString(C.mr_egl_query(ref, extensions)),
		})
	}
	var devices [64]unsafe.Pointer
	for i := range int(C.mr_egl_devices(&devices[0], C.int32_t(len(devices)))) {
		try(fmt.Sprintf("device %d", i), platformDevice, devices[i])
	}
	if len(list) == 0 {
		try("surfaceless", platformSurfaceless, nil)
	}
	if len(list) == 0 {
		try("default display", 0, nil)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: libEGL has no driver that starts (%s)", ErrNone, strings.Join(refused, "; "))
	}
	return list, nil
}

// Context is a context of its own, with nothing to draw on.
type Context struct {
	display, surface, ref unsafe.Pointer
}

// list is attributes as C wants them.
func list(pairs ...C.int32_t) *C.int32_t {
	return &append(pairs, none)[0]
}

// New makes a context of at least a version, robust where the driver can.
func (d Display) New(major, minor int) (*Context, error) { return d.make(major, minor, nil) }

func (d Display) make(major, minor int, share unsafe.Pointer) (*Context, error) {
	mu.Lock()
	defer mu.Unlock()
	x := &Context{display: d.ref}
	surfaceless := strings.Contains(d.exts, "EGL_KHR_surfaceless_context")
	config := C.mr_egl_config(d.ref, list(surfaceType, pbufferBit, renderableType, openglBit))
	if config == nil && surfaceless {
		config = C.mr_egl_config(d.ref, list(surfaceType, 0, renderableType, openglBit))
	}
	if config == nil && !strings.Contains(d.exts, "EGL_KHR_no_config_context") {
		return nil, fmt.Errorf("%w: %s has no configuration for desktop OpenGL", ErrNone, d.Name)
	}
	version := []C.int32_t{contextMajor, C.int32_t(major), contextMinor, C.int32_t(minor), contextProfile, coreProfile}
	for _, more := range [][]C.int32_t{
		{robustAccess, 1, resetStrategy, loseOnReset},
		{robustAccessEXT, 1, resetStrategyEXT, loseOnReset},
		{},
	} {
		x.ref = C.mr_egl_create(d.ref, config, share, list(append(version[:len(version):len(version)], more...)...))
		if x.ref != nil {
			break
		}
	}
	if x.ref == nil {
		return nil, fmt.Errorf("%w: %s gives no context of OpenGL %d.%d: %s", ErrNone, d.Name, major, minor, lastError())
	}
	if !surfaceless {
		if x.surface = C.mr_egl_pbuffer(d.ref, config, list(width, 1, height, 1)); x.surface == nil {
			defer x.Destroy()
			return nil, fmt.Errorf("%w: %s gives no surface: %s", ErrNone, d.Name, lastError())
		}
	}
	return x, nil
}

// Share makes a context that shares buffers, programs and textures with the one that
// is current on this thread.
func Share(major, minor int) (*Context, error) {
	if err := load(); err != nil {
		return nil, err
	}
	now := C.mr_egl_now()
	if now == nil {
		return nil, fmt.Errorf("%w: none of EGL is current on this thread", ErrNone)
	}
	ref := C.mr_egl_now_display()
	d := Display{Name: "the program's display", ref: ref, exts: C.GoString(C.mr_egl_query(ref, extensions))}
	return d.make(major, minor, now)
}

// MakeCurrent makes the context this thread's.
func (x *Context) MakeCurrent() error {
	if C.mr_egl_current(x.display, x.surface, x.ref) == 0 {
		why := lastError()
		if why == "EGL_BAD_ACCESS" {
			why += ": it is current on another thread"
		}
		return fmt.Errorf("%w: making it current: %s", ErrNone, why)
	}
	return nil
}

// Current reports that the context is this thread's.
func (x *Context) Current() bool { return C.mr_egl_now() == x.ref }

// Leave ends what this thread has with EGL.
func (x *Context) Leave() {
	C.mr_egl_current(x.display, nil, nil)
	C.mr_egl_leave()
}

// Destroy gives the context back, once no thread has it.
func (x *Context) Destroy() {
	C.mr_egl_destroy(x.display, x.surface, x.ref)
}

// Proc is what finds OpenGL's functions.
func Proc() (func(name string) unsafe.Pointer, error) {
	if err := load(); err != nil {
		return nil, err
	}
	return procAddress, nil
}

func procAddress(name string) unsafe.Pointer {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	return C.mr_egl_proc(text)
}

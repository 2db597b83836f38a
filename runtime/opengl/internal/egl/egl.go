//go:build cgo && linux && !android && !noopengl

package egl

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

// What is called of the library: result, name, parameters, arguments.
#define FUNCTIONS(F) \
	F(void *, eglGetProcAddress, (char const *name), (name)) \
	F(int32_t, eglGetError, (void), ()) \
	F(char const *, eglQueryString, (void *d, int32_t what), (d, what)) \
	F(void *, eglGetDisplay, (void *native), (native)) \
	F(unsigned, eglInitialize, (void *d, int32_t *major, int32_t *minor), (d, major, minor)) \
	F(unsigned, eglBindAPI, (unsigned api), (api)) \
	F(unsigned, eglChooseConfig, (void *d, int32_t const *a, void **list, int32_t n, int32_t *got), (d, a, list, n, got)) \
	F(void *, eglCreateContext, (void *d, void *config, void *share, int32_t const *a), (d, config, share, a)) \
	F(unsigned, eglDestroyContext, (void *d, void *c), (d, c)) \
	F(unsigned, eglMakeCurrent, (void *d, void *draw, void *read, void *c), (d, draw, read, c)) \
	F(void *, eglGetCurrentContext, (void), ()) \
	F(void *, eglGetCurrentDisplay, (void), ()) \
	F(unsigned, eglReleaseThread, (void), ())

#define CALL(result, name, parameters, arguments) \
	static result (*at_##name) parameters; \
	static result mr_##name parameters { return at_##name arguments; }
FUNCTIONS(CALL)

// mr_load looks them up, and says what is missing.
static char const *mr_load(void) {
	static void *library;
	if (library == NULL && (library = dlopen("libEGL.so.1", RTLD_NOW | RTLD_LOCAL)) == NULL)
		return dlerror();
#define FIND(result, name, parameters, arguments) \
	if ((*(void **)&at_##name = dlsym(library, #name)) == NULL) \
		return #name;
	FUNCTIONS(FIND)
	return NULL;
}

// Extensions, which are no symbols of the library.
static int32_t mr_devices(void **devices, int32_t n) {
	unsigned (*list)(int32_t, void **, int32_t *) = (unsigned (*)(int32_t, void **, int32_t *))at_eglGetProcAddress("eglQueryDevicesEXT");
	int32_t got = 0;
	return list != NULL && list(n, devices, &got) ? got : 0;
}

static void *mr_display(unsigned platform, void *native) {
	void *(*get)(unsigned, void *, int32_t const *) = (void *(*)(unsigned, void *, int32_t const *))at_eglGetProcAddress("eglGetPlatformDisplayEXT");
	return get == NULL ? NULL : get(platform, native, NULL);
}
*/
import "C"

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync"
	"unsafe"
)

// ErrNone says that the machine offers no context.
var ErrNone = errors.New("no OpenGL context can be made")

var loading sync.Mutex

func load() error {
	loading.Lock()
	defer loading.Unlock()
	if why := C.mr_load(); why != nil {
		return fmt.Errorf("%w: libEGL.so.1 cannot be used: %s", ErrNone, C.GoString(why))
	}
	return nil
}

// Numbers of the specification.
const (
	openglAPI                       = 0x30A2
	platformDevice                  = 0x313F
	platformSurfaceless             = 0x31DD
	vendor, extensions              = 0x3053, 0x3055
	none                            = 0x3038
	surfaceType                     = 0x3033
	renderableType, openglBit       = 0x3040, 8
	contextMajor, contextMinor      = 0x3098, 0x30FB
	contextProfile, coreProfile     = 0x30FD, 1
	robustAccess, resetStrategy     = 0x31B2, 0x31BD // of EGL 1.5, and of its extension:
	robustAccessEXT, resetStrategy2 = 0x30BF, 0x3138
	loseOnReset                     = 0x31BF
)

var errorNames = map[int32]string{
	0x3001: "EGL_NOT_INITIALIZED", 0x3002: "EGL_BAD_ACCESS", 0x3003: "EGL_BAD_ALLOC", 0x3004: "EGL_BAD_ATTRIBUTE",
	0x3005: "EGL_BAD_CONFIG", 0x3006: "EGL_BAD_CONTEXT", 0x3007: "EGL_BAD_CURRENT_SURFACE", 0x3008: "EGL_BAD_DISPLAY",
	0x3009: "EGL_BAD_MATCH", 0x300C: "EGL_BAD_PARAMETER", 0x300D: "EGL_BAD_SURFACE", 0x300E: "EGL_CONTEXT_LOST",
}

// lastError names the error of this thread's last call.
func lastError() string {
	code := int32(C.mr_eglGetError())
	if name := errorNames[code]; name != "" {
		return name
	}
	return fmt.Sprintf("EGL error %#x", code)
}

// Display is a place to make contexts: a device, or a platform.
type Display struct {
	Name string
	ref  unsafe.Pointer
	exts string
}

// Displays lists the usable displays: the devices that the library knows, else the platform without
// surfaces, else the default. They are never closed, because all callers get the same displays.
func Displays() ([]Display, error) {
	if err := load(); err != nil {
		return nil, err
	}
	goruntime.LockOSThread() // error codes belong to the thread
	defer goruntime.UnlockOSThread()
	var list []Display
	var refused []string
	try := func(name string, ref unsafe.Pointer) {
		var major, minor C.int32_t
		if ref == nil || C.mr_eglInitialize(ref, &major, &minor) == 0 {
			refused = append(refused, name+": "+lastError())
			return
		}
		name = fmt.Sprintf("%s, EGL %d.%d %s", name, major, minor, C.GoString(C.mr_eglQueryString(ref, vendor)))
		list = append(list, Display{name, ref, C.GoString(C.mr_eglQueryString(ref, extensions))})
	}
	var devices [64]unsafe.Pointer
	for i := range int(C.mr_devices(&devices[0], C.int32_t(len(devices)))) {
		try(fmt.Sprintf("device %d", i), C.mr_display(platformDevice, devices[i]))
	}
	if len(list) == 0 {
		try("surfaceless", C.mr_display(platformSurfaceless, nil))
	}
	if len(list) == 0 {
		try("default display", C.mr_eglGetDisplay(nil))
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: no driver of libEGL starts (%s)", ErrNone, strings.Join(refused, "; "))
	}
	return list, nil
}

// Context is a context without a surface to draw on.
type Context struct{ display, ref unsafe.Pointer }

// list makes a C attribute list.
func list(pairs ...C.int32_t) *C.int32_t { return &append(pairs, none)[0] }

// New makes a context of at least a version, robust if the driver supports that.
func (d Display) New(major, minor int) (*Context, error) { return d.make(major, minor, nil) }

func (d Display) make(major, minor int, share unsafe.Pointer) (*Context, error) {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	if !strings.Contains(d.exts, "EGL_KHR_surfaceless_context") {
		return nil, fmt.Errorf("%w: the driver needs a surface (it lacks EGL_KHR_surfaceless_context)", ErrNone)
	}
	var config unsafe.Pointer // any surfaces; without a config, EGL_KHR_no_config_context may work
	var n C.int32_t
	C.mr_eglChooseConfig(d.ref, list(surfaceType, 0, renderableType, openglBit), &config, 1, &n)
	x := &Context{display: d.ref}
	version := []C.int32_t{contextMajor, C.int32_t(major), contextMinor, C.int32_t(minor), contextProfile, coreProfile}
	for _, more := range [][]C.int32_t{{robustAccess, 1, resetStrategy, loseOnReset}, {robustAccessEXT, 1, resetStrategy2, loseOnReset}, {}} {
		C.mr_eglBindAPI(openglAPI)
		if x.ref = C.mr_eglCreateContext(d.ref, config, share, list(append(version[:6:6], more...)...)); x.ref != nil {
			break
		}
	}
	if x.ref == nil {
		return nil, fmt.Errorf("%w: OpenGL %d.%d: %s", ErrNone, major, minor, lastError())
	}
	return x, nil
}

// Share makes a context that shares buffers, programs and textures with the current one of this
// thread.
func Share(major, minor int) (*Context, error) {
	if err := load(); err != nil {
		return nil, err
	}
	C.mr_eglBindAPI(openglAPI)
	now, ref := C.mr_eglGetCurrentContext(), C.mr_eglGetCurrentDisplay()
	if now == nil {
		return nil, fmt.Errorf("%w: no context of EGL is current on this thread", ErrNone)
	}
	return Display{"the program's display", ref, C.GoString(C.mr_eglQueryString(ref, extensions))}.make(major, minor, now)
}

// MakeCurrent makes the context current on this thread.
func (x *Context) MakeCurrent() error {
	C.mr_eglBindAPI(openglAPI) // belongs to the thread
	if C.mr_eglMakeCurrent(x.display, nil, nil, x.ref) != 0 {
		return nil
	}
	why := lastError()
	if why == "EGL_BAD_ACCESS" {
		why += ": it is current on another thread"
	}
	return fmt.Errorf("%w: making it current failed: %s", ErrNone, why)
}

// Current reports whether the context is current on this thread.
func (x *Context) Current() bool { return C.mr_eglGetCurrentContext() == x.ref }

// Leave ends this thread's use of EGL.
func (x *Context) Leave() {
	C.mr_eglMakeCurrent(x.display, nil, nil, nil)
	C.mr_eglReleaseThread()
}

// Destroy frees the context when no thread has it any more.
func (x *Context) Destroy() { C.mr_eglDestroyContext(x.display, x.ref) }

// Proc returns the lookup of OpenGL's functions.
func Proc() (func(name string) unsafe.Pointer, error) {
	if err := load(); err != nil {
		return nil, err
	}
	return func(name string) unsafe.Pointer {
		text := C.CString(name)
		defer C.free(unsafe.Pointer(text))
		return C.mr_eglGetProcAddress(text)
	}, nil
}

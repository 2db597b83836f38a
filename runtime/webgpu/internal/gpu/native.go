//go:build cgo && ((linux && !android && amd64) || darwin || (windows && amd64))

package gpu

/*
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Prototypes of the native library the binding links. They are spelled with
// plain pointers, since the binding's header is not on the include path.
extern void wgpuBufferMapAsync(void *buffer, uint32_t mode, size_t offset, size_t size, void (*done)(int32_t, void *), void *user);
extern void *wgpuBufferGetMappedRange(void *buffer, size_t offset, size_t size);
extern void const *wgpuBufferGetConstMappedRange(void *buffer, size_t offset, size_t size);
extern void wgpuDeviceSetUncapturedErrorCallback(void *device, void (*fn)(int32_t, char const *, void *), void *user);
extern bool wgpuDevicePoll(void *device, bool wait, void const *index);

// mr_map is where a mapping's outcome arrives. It lives in C memory because
// the native library keeps its address across calls.
typedef struct {
	volatile int32_t done;
	int32_t status;
} mr_map;

static void mr_mapped(int32_t status, void *user) {
	mr_map *m = user;
	m->status = status;
	m->done = 1;
}

static void mr_map_start(void *buffer, uint32_t mode, size_t size, mr_map *m) {
	m->done = 0;
	wgpuBufferMapAsync(buffer, mode, 0, size, mr_mapped, m);
}

// mr_fault holds the first error that no scope caught.
typedef struct {
	int32_t type;
	char text[500];
} mr_fault;

static void mr_uncaptured(int32_t type, char const *text, void *user) {
	mr_fault *f = user;
	if (type == 0 || f->type != 0)
		return;
	f->type = type;
	strncpy(f->text, text, sizeof f->text - 1);
}

static void mr_watch(void *device, mr_fault *f) {
	wgpuDeviceSetUncapturedErrorCallback(device, mr_uncaptured, f);
}
*/
import "C"

import (
	"unsafe"

	"github.com/rajveermalviya/go-webgpu/wgpu"
)

// The binding's own MapAsync passes native code the address of a Go variable,
// which the collector may move or free before the callback comes. The functions
// below bypass it: they read the native handles in unexported fields of the
// binding's structs. The binding is pinned to one version, and
// TestBindingLayout fails if the fields ever move.

// bufferRef is the native handle of a buffer: the second field of the struct.
func bufferRef(b *wgpu.Buffer) unsafe.Pointer {
	return (*[2]unsafe.Pointer)(unsafe.Pointer(b))[1]
}

// deviceRef is the native handle of a device: the only field of the struct.
func deviceRef(d *wgpu.Device) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(d))
}

// mapping is a pending map request. The caller frees it when it is done.
type mapping struct{ c *C.mr_map }

func startMap(b *wgpu.Buffer, write bool, size int64) mapping {
	m := mapping{(*C.mr_map)(C.calloc(1, C.sizeof_mr_map))}
	mode := C.uint32_t(wgpu.MapMode_Read)
	if write {
		mode = C.uint32_t(wgpu.MapMode_Write)
	}
	C.mr_map_start(bufferRef(b), mode, C.size_t(size), m.c)
	return m
}

func (m mapping) done() bool { return m.c.done != 0 }

// finish returns the status and frees the request.
func (m mapping) finish() wgpu.BufferMapAsyncStatus {
	s := wgpu.BufferMapAsyncStatus(m.c.status)
	C.free(unsafe.Pointer(m.c))
	return s
}

// mapped is the memory of a mapped buffer. A call in any other state aborts the process; [Buffer]
// tracks the state.
func mapped(b *wgpu.Buffer, write bool, size int64) []byte {
	var p unsafe.Pointer
	if write {
		p = C.wgpuBufferGetMappedRange(bufferRef(b), 0, C.size_t(size))
	} else {
		p = C.wgpuBufferGetConstMappedRange(bufferRef(b), 0, C.size_t(size))
	}
	return unsafe.Slice((*byte)(p), size)
}

// watcher collects errors outside of error scopes. Without one the native library ends the process.
type watcher struct{ c *C.mr_fault }

func watch(d *wgpu.Device) watcher {
	w := watcher{(*C.mr_fault)(C.calloc(1, C.sizeof_mr_fault))}
	C.mr_watch(deviceRef(d), w.c)
	return w
}

// take returns the kind and the text of the first error since the last call, or "".
func (w watcher) take() (wgpu.ErrorType, string) {
	kind := wgpu.ErrorType(w.c._type)
	if kind == wgpu.ErrorType_NoError {
		return kind, ""
	}
	s := C.GoString(&w.c.text[0])
	if s == "" {
		s = "unnamed device error"
	}
	w.c._type = 0
	return kind, s
}

// free ends the watch; the device must be released before.
func (w watcher) free() { C.free(unsafe.Pointer(w.c)) }

// poll advances the device without waiting and reports whether the queue is empty. Never use the
// waiting form of the native call: after five seconds it gives up, reports an empty queue, and
// frees memory that the device still uses.
func poll(d *wgpu.Device) bool {
	return bool(C.wgpuDevicePoll(deviceRef(d), false, nil))
}

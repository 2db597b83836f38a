//go:build linux && !android

#include "egl.h"

#include <dlfcn.h>
#include <stddef.h>

#define API 0x30A2 // desktop OpenGL

static struct {
	void *library;
	void *(*get_proc)(char const *);
	int32_t (*get_error)(void);
	char const *(*query)(void *, int32_t);
	void *(*get_display)(void *);
	unsigned (*initialize)(void *, int32_t *, int32_t *);
	unsigned (*bind_api)(unsigned);
	unsigned (*choose)(void *, int32_t const *, void **, int32_t, int32_t *);
	void *(*create)(void *, void *, void *, int32_t const *);
	void *(*pbuffer)(void *, void *, int32_t const *);
	unsigned (*destroy_surface)(void *, void *);
	unsigned (*destroy)(void *, void *);
	unsigned (*current)(void *, void *, void *, void *);
	void *(*now)(void);
	void *(*now_display)(void);
	unsigned (*leave)(void);
} egl;

int mr_egl_load(char const **why) {
	static struct {
		char const *name;
		size_t at;
	} const table[] = {
		{"eglGetProcAddress", offsetof(__typeof__(egl), get_proc)},
		{"eglGetError", offsetof(__typeof__(egl), get_error)},
		{"eglQueryString", offsetof(__typeof__(egl), query)},
		{"eglGetDisplay", offsetof(__typeof__(egl), get_display)},
		{"eglInitialize", offsetof(__typeof__(egl), initialize)},
		{"eglBindAPI", offsetof(__typeof__(egl), bind_api)},
		{"eglChooseConfig", offsetof(__typeof__(egl), choose)},
		{"eglCreateContext", offsetof(__typeof__(egl), create)},
		{"eglCreatePbufferSurface", offsetof(__typeof__(egl), pbuffer)},
		{"eglDestroySurface", offsetof(__typeof__(egl), destroy_surface)},
		{"eglDestroyContext", offsetof(__typeof__(egl), destroy)},
		{"eglMakeCurrent", offsetof(__typeof__(egl), current)},
		{"eglGetCurrentContext", offsetof(__typeof__(egl), now)},
		{"eglGetCurrentDisplay", offsetof(__typeof__(egl), now_display)},
		{"eglReleaseThread", offsetof(__typeof__(egl), leave)},
	};
	if (egl.library != NULL)
		return 0;
	void *library = dlopen("libEGL.so.1", RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) {
		*why = dlerror();
		return -1;
	}
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		void *f = dlsym(library, table[i].name);
		if (f == NULL) {
			*why = table[i].name;
			dlclose(library);
			return -1;
		}
		*(void **)((char *)&egl + table[i].at) = f;
	}
	egl.library = library;
	return 0;
}

void *mr_egl_proc(char const *name) { return egl.get_proc(name); }

int32_t mr_egl_error(void) { return egl.get_error(); }

char const *mr_egl_query(void *display, int32_t what) { return egl.query(display, what); }

int32_t mr_egl_devices(void **devices, int32_t n) {
	unsigned (*list)(int32_t, void **, int32_t *) = (unsigned (*)(int32_t, void **, int32_t *))egl.get_proc("eglQueryDevicesEXT");
	int32_t got = 0;
	if (list == NULL || !list(n, devices, &got))
		return -1;
	return got;
}

void *mr_egl_display(uint32_t platform, void *native) {
	void *(*get)(uint32_t, void *, int32_t const *);
	if (platform == 0)
		return egl.get_display(native);
	get = (void *(*)(uint32_t, void *, int32_t const *))egl.get_proc("eglGetPlatformDisplayEXT");
	return get == NULL ? NULL : get(platform, native, NULL);
}

int mr_egl_initialize(void *display, int32_t *major, int32_t *minor) { return egl.initialize(display, major, minor) != 0; }

void *mr_egl_config(void *display, int32_t const *attributes) {
	void *config = NULL;
	int32_t n = 0;
	if (!egl.choose(display, attributes, &config, 1, &n) || n == 0)
		return NULL;
	return config;
}

void *mr_egl_create(void *display, void *config, void *share, int32_t const *attributes) {
	if (!egl.bind_api(API))
		return NULL;
	return egl.create(display, config, share, attributes);
}

void *mr_egl_pbuffer(void *display, void *config, int32_t const *attributes) { return egl.pbuffer(display, config, attributes); }

int mr_egl_current(void *display, void *surface, void *context) {
	egl.bind_api(API); // which is a thread's
	return egl.current(display, surface, surface, context) != 0;
}

void *mr_egl_now(void) {
	egl.bind_api(API);
	return egl.now();
}

void *mr_egl_now_display(void) { return egl.now_display(); }

void mr_egl_destroy(void *display, void *surface, void *context) {
	if (context != NULL)
		egl.destroy(display, context);
	if (surface != NULL)
		egl.destroy_surface(display, surface);
}

void mr_egl_leave(void) { egl.leave(); }

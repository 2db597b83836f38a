// The part of EGL that package egl calls, with the library looked up at run time:
// neither its headers nor the library itself are needed to build or to start.
#include <stdint.h>

// Loads the library, once; 0 where that succeeded, else what was missing is at why.
int mr_egl_load(char const **why);

void *mr_egl_proc(char const *name);
int32_t mr_egl_error(void);
char const *mr_egl_query(void *display, int32_t what);
// Devices, at most n of them; -1 where the library cannot list them.
int32_t mr_egl_devices(void **devices, int32_t n);
void *mr_egl_display(uint32_t platform, void *native);
int mr_egl_initialize(void *display, int32_t *major, int32_t *minor);
void *mr_egl_config(void *display, int32_t const *attributes);
void *mr_egl_create(void *display, void *config, void *share, int32_t const *attributes);
void *mr_egl_pbuffer(void *display, void *config, int32_t const *attributes);
int mr_egl_current(void *display, void *surface, void *context);
void *mr_egl_now(void);
void *mr_egl_now_display(void);
void mr_egl_destroy(void *display, void *surface, void *context);
void mr_egl_leave(void);

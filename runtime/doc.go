// Package runtime is the contract between the engine and its devices: buffers,
// programs, launches, and the registry of drivers. It knows no printer and no
// plan. Drivers (runtime/cpu, runtime/webgpu, runtime/null) implement Device
// and register themselves, as database/sql drivers do.
//
// Where the standard library's runtime is needed too, import that one as
// goruntime.
//
// Engine part: no compatibility promise; use package millrace.
package runtime

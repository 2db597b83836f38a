// Package native turns kernels into machine code, for processors that it knows, without
// any compiler: what it makes runs in a static binary, microseconds after it is wanted.
//
// Engine part: no compatibility promise; use package millrace.
package native

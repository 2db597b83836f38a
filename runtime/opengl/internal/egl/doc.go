// Package egl makes contexts of desktop OpenGL without a window. It loads libEGL at first use: a
// machine without libEGL gives an error, and the program still starts. The library's headers are
// not needed either.
//
// Input: a version of OpenGL. Output: a context. Read egl.go first.
//
// Engine part: no compatibility promise; use package millrace.
package egl

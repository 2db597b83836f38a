//go:build opengl

package main

// OpenGL's headers are not on every machine that has a C compiler.
import _ "github.com/millrace-go/millrace/runtime/opengl"

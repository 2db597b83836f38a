//go:build !(cgo && linux && !android && !noopengl)

package opengl

import (
	"fmt"
	goruntime "runtime"

	"github.com/millrace-go/millrace/runtime"
)

var absent = runtime.Absent{Name: "opengl", Why: fmt.Sprintf(
	"this build for %s/%s has no OpenGL; OpenGL needs linux, cgo and a build without the tag noopengl", goruntime.GOOS, goruntime.GOARCH)}

func init() { runtime.Register("opengl", absent) }

// Share needs EGL.
func Share() (Context, error) { return Context{}, absent.Err() }

// Lend needs a tensor of such a device.
func Lend(any, func(buffer uint32, offset int) error) error { return absent.Err() }

//go:build !(cgo && linux && !android && !noopengl)

package opengl

import (
	"fmt"
	goruntime "runtime"

	"github.com/millrace-go/millrace/runtime"
)

// Share needs EGL.
func Share() (Context, error) { return Context{}, stub{}.err() }

// Lend needs a tensor of such a device.
func Lend(any, func(buffer uint32, offset int) error) error { return stub{}.err() }

func init() { runtime.Register("opengl", stub{}) }

// Isolates: so opening says what is missing.
func (stub) Isolates() {}

// stub is the driver of builds that have no EGL.
type stub struct{}

func (stub) err() error {
	return fmt.Errorf("%w %q: this build for %s/%s has none; it needs cgo and linux, and no tag noopengl",
		runtime.ErrNoDriver, "opengl", goruntime.GOOS, goruntime.GOARCH)
}

func (s stub) Open(runtime.Config) (runtime.Device, error) { return nil, s.err() }

func (s stub) Probe() (string, error) { return "", s.err() }

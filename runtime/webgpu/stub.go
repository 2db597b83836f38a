//go:build !(cgo && ((linux && !android && amd64) || darwin || (windows && amd64)))

package webgpu

import (
	"fmt"
	goruntime "runtime"

	"github.com/millrace-go/millrace/runtime"
)

func init() { runtime.Register("webgpu", stub{}) }

// Isolates: so opening says what is missing.
func (stub) Isolates() {}

// stub is the driver of builds that cannot link the native library.
type stub struct{}

func (stub) err() error {
	return fmt.Errorf("%w %q: this build for %s/%s has no native library; it needs cgo and linux/amd64, darwin or windows/amd64",
		runtime.ErrNoDriver, "webgpu", goruntime.GOOS, goruntime.GOARCH)
}

func (s stub) Open(runtime.Config) (runtime.Device, error) { return nil, s.err() }

func (s stub) Probe() (string, error) { return "", s.err() }

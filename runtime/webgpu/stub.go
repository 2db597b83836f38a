//go:build !(cgo && ((linux && !android && amd64) || darwin || (windows && amd64)))

package webgpu

import (
	"fmt"
	goruntime "runtime"

	"github.com/millrace-go/millrace/runtime"
)

func init() {
	runtime.Register("webgpu", runtime.Absent{Name: "webgpu", Why: fmt.Sprintf(
		"this build for %s/%s has no WebGPU library; the library needs cgo and linux/amd64, darwin or windows/amd64", goruntime.GOOS, goruntime.GOARCH)})
}

//go:build !((linux || darwin || windows) && (amd64 || arm64))

package vulkan

import (
	"fmt"
	goruntime "runtime"

	"github.com/millrace-go/millrace/runtime"
)

func init() {
	runtime.Register("vulkan", runtime.Absent{Name: "vulkan", Why: fmt.Sprintf(
		"there is no way to call Vulkan on %s/%s; it needs linux, windows or darwin on amd64 or arm64", goruntime.GOOS, goruntime.GOARCH)})
}

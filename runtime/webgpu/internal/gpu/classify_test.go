//go:build cgo && ((linux && !android && amd64) || darwin || (windows && amd64))

package gpu

import (
	"errors"
	"testing"

	"github.com/rajveermalviya/go-webgpu/wgpu"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		kind wgpu.ErrorType
		text string
		want error
	}{
		{wgpu.ErrorType_DeviceLost, "gone", gpurun.ErrLost},
		{wgpu.ErrorType_NoError, "Parent device is lost", gpurun.ErrLost},
		{wgpu.ErrorType_OutOfMemory, "no room", gpurun.ErrMemory},
		{wgpu.ErrorType_Validation, "Not enough memory left", gpurun.ErrMemory},
		{wgpu.ErrorType_Validation, "a bad binding", nil},
	} {
		err := classify(c.kind, errors.New(c.text))
		for _, fault := range []error{gpurun.ErrLost, gpurun.ErrMemory} {
			if errors.Is(err, fault) != (fault == c.want) {
				t.Errorf("%v %q: %v, want %v", c.kind, c.text, err, c.want)
			}
		}
	}
}

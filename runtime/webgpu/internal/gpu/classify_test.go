//go:build cgo && ((linux && !android && amd64) || darwin || (windows && amd64))

package gpu

import (
	"errors"
	"testing"

	"github.com/rajveermalviya/go-webgpu/wgpu"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		kind wgpu.ErrorType
		text string
		want error
	}{
		{wgpu.ErrorType_DeviceLost, "gone", ErrLost},
		{wgpu.ErrorType_NoError, "Parent device is lost", ErrLost},
		{wgpu.ErrorType_OutOfMemory, "no room", ErrMemory},
		{wgpu.ErrorType_Validation, "Not enough memory left", ErrMemory},
		{wgpu.ErrorType_Validation, "a bad binding", nil},
	} {
		err := classify(c.kind, errors.New(c.text))
		for _, fault := range []error{ErrLost, ErrMemory} {
			if errors.Is(err, fault) != (fault == c.want) {
				t.Errorf("%v %q: %v, want %v", c.kind, c.text, err, c.want)
			}
		}
	}
}

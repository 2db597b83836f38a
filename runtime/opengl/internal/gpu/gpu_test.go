//go:build cgo && linux && !android

package gpu

import (
	"testing"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/internal/gputest"
)

const head = `#version 430 core
layout(std430, binding = 0) buffer Buffer0 { uint b[]; };
layout(std140, binding = 0) uniform Words { uvec4 p[1]; };
layout(local_size_x = 64) in;
void main() {
	uint i = gl_GlobalInvocationID.x;
`

const double = head + `	if (i < p[0].x) {
		b[i] = b[i] * 2u + p[0].y;
	}
}
`

const slow = head + `	uint x = b[i];
	for (uint n = 0u; n < p[0].x; n = n + 1u) {
		x = x * 1664525u + 1013904223u;
		x = x ^ (x >> 7u);
	}
	b[i] = x;
}
`

// TestDevice: the device does what those that use it rely on.
func TestDevice(t *testing.T) {
	gputest.RunContract(t, gputest.Target{
		Name: "opengl",
		Open: func(adapter string) (gpurun.Device, error) {
			d, err := Best(adapter)
			if err != nil {
				return nil, err
			}
			return d, nil
		},
		Double: double, Slow: slow,
		Bad: map[string]string{
			"syntax":     "#version 430 core\nvoid main( {",
			"type":       head + "uint x = 1.0; }",
			"entry":      "#version 430 core\nlayout(local_size_x = 1) in;\nvoid other() {}",
			"group size": "#version 430 core\nlayout(local_size_x = 65536) in;\nvoid main() {}",
			"no groups":  "#version 430 core\nvoid main() {}",
		},
	})
}

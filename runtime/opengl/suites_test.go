//go:build cgo && linux && !android && !noopengl

package opengl

import (
	"testing"

	"github.com/millrace-go/millrace/codegen/glsl"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/internal/gputest"
	"github.com/millrace-go/millrace/runtime/opengl/internal/gpu"
)

var target = gputest.Target{
	Name:    name,
	Dialect: glsl.Dialect,
	Open: func(adapter string) (gpurun.Device, error) {
		g, err := gpu.Best(adapter)
		if err != nil {
			return nil, err
		}
		return g, nil
	},
}

func TestSuites(t *testing.T) { gputest.Run(t, target) }

func BenchmarkSuites(b *testing.B) { gputest.Bench(b, target) }

//go:build cgo && linux && !android && !noopengl

package opengl

import (
	"testing"

	"github.com/millrace-go/millrace/codegen/glsl"
	"github.com/millrace-go/millrace/runtime/internal/gputest"
)

var target = gputest.Target{
	Name:    name,
	Dialect: glsl.Dialect,
	Open:    open,
}

func TestSuites(t *testing.T) { gputest.Run(t, target) }

func TestWithoutSubgroups(t *testing.T) { gputest.WithoutSubgroups(t, target) }

func init() { gputest.ServeFaults(target) }

func TestIsolated(t *testing.T) { gputest.Isolated(t, target) }

func BenchmarkSuites(b *testing.B) { gputest.Bench(b, target) }

package vk

import (
	"go/build"
	"slices"
	"testing"
)

// TestOtherSystems: where there is no loader, the packages below runtime/vulkan have no code, so that
// go build ./... passes.
func TestOtherSystems(t *testing.T) {
	for _, system := range []string{"freebsd/amd64", "openbsd/arm64", "linux/386", "linux/riscv64", "js/wasm", "windows/386", "plan9/amd64"} {
		for _, dir := range []string{".", "../gpu"} {
			c := build.Default
			i := slices.Index([]byte(system), '/')
			c.GOOS, c.GOARCH = system[:i], system[i+1:]
			p, err := c.ImportDir(dir, 0)
			if err != nil || !slices.Equal(p.GoFiles, []string{"doc.go"}) {
				t.Errorf("%s, %s: files %v, %v", system, dir, p.GoFiles, err)
			}
		}
	}
}

//go:build !go1.27

package compliance

// Go 1.27 refuses to link the library that go-webgpu 0.17.1 brings, for bitcode in it.
import _ "github.com/millrace-go/millrace/runtime/webgpu"

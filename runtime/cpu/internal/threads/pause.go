//go:build amd64 || arm64

package threads

// pause tells the processor, a few times, that this is a waiting loop: the other half of its core
// may use the resources meanwhile. It takes well below a microsecond, during which the goroutine
// cannot be stopped.
func pause()

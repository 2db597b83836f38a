//go:build !amd64 && !arm64

package threads

// pause does nothing where no instruction for it is known.
func pause() {}

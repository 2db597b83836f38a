//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
)

// dumpTo is the environment variable with a folder for shaders that a driver is compiling. A driver
// that crashes leaves them there.
const dumpTo = "MILLRACE_VULKAN_DUMP"

// dump writes a shader's text, if there is one, and its module. done removes them.
func dump(source string, words []uint32) (done func(), err error) {
	dir := os.Getenv(dumpTo)
	if dir == "" {
		return func() {}, nil
	}
	var module []byte
	for _, w := range words {
		module = binary.LittleEndian.AppendUint32(module, w)
	}
	sum := sha256.Sum256(module)
	name := filepath.Join(dir, hex.EncodeToString(sum[:8]))
	err = os.WriteFile(name+".spv", module, 0o600)
	if source != "" {
		err = errors.Join(err, os.WriteFile(name+".txt", []byte(source), 0o600))
	}
	return func() {
		os.Remove(name + ".spv")
		os.Remove(name + ".txt")
	}, err
}

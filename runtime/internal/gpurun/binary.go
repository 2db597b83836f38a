package gpurun

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/millrace-go/millrace/runtime"
)

// The driver's compiled shaders can be stored if the API exports them. The scope in an entry's key
// names the device and the driver. An entry begins with a hash: drivers check their input, but
// NVIDIA's crashes on a changed byte. Entries are code; like the CPU's objects, only the user's own
// cache may hold them, and bundles hold the texts.

// KindBinary is the kind of cache entries that hold the driver's compiled form of a shader, by the
// text's hash.
const KindBinary = "binary"

// Keeper is a Device that exports the driver's compiled shaders.
type Keeper interface {
	// Binary returns the driver's compiled form of a pipeline, nil if the driver does not export
	// it.
	Binary(p Pipeline) ([]byte, error)
	// NewPipelineOf makes a pipeline of an unchanged binary. The error is ErrBinary if the driver
	// rejects it, as after an update.
	NewPipelineOf(binary []byte, bindings []Binding) (Pipeline, error)
}

// ErrBinary is a binary that the driver rejects.
var ErrBinary = errors.New("the driver rejects the binary")

// maxBinary bounds the binaries that are read and stored.
const maxBinary = 16 << 20

func (d *Runner) keeper() (Keeper, runtime.Cache) {
	k, _ := d.gpu.(Keeper)
	if k == nil || d.cfg.Cache == nil {
		return nil, nil
	}
	return k, d.cfg.Cache
}

func (d *Runner) binaryKey(source string) string {
	sum := sha256.Sum256([]byte(source))
	return d.caps.Scope() + "\n" + hex.EncodeToString(sum[:])
}

// hasBinary reports whether the cache has a binary of the text.
func (d *Runner) hasBinary(source string) bool {
	k, cache := d.keeper()
	if k == nil {
		return false
	}
	_, ok := peek(cache, KindBinary, d.binaryKey(source))
	return ok
}

// kept returns the pipeline of a text that an earlier process compiled; nil if there is none. It
// rejects invalid entries, and the cache counts them.
func (d *Runner) kept(source string, bindings []Binding) (Pipeline, error) {
	k, cache := d.keeper()
	if k == nil {
		return nil, nil
	}
	data, ok := cache.Get(KindBinary, d.binaryKey(source))
	if !ok {
		return nil, nil
	}
	sum := [sha256.Size]byte{}
	rest := data[copy(sum[:], data):]
	pipe, err := Pipeline(nil), ErrBinary
	if sha256.Sum256(rest) == sum {
		pipe, err = k.NewPipelineOf(rest, bindings)
	}
	if errors.Is(err, ErrBinary) {
		cache.Refuse(KindBinary, err)
		return nil, nil
	}
	return pipe, err
}

// keep stores the binary of a text, in the background, once.
func (d *Runner) keep(source string, sh *compiled) {
	k, cache := d.keeper()
	if k == nil || !d.shaders.keeps(sh) {
		return
	}
	added := d.notes.queue.Add(func() {
		data, err := k.Binary(sh.pipe)
		if err != nil || len(data) == 0 || len(data) > maxBinary {
			return // it is compiled again next time
		}
		sum := sha256.Sum256(data)
		_ = cache.Put(KindBinary, d.binaryKey(source), append(sum[:], data...)) // the cache counts failures
	})
	if c, ok := cache.(dropper); ok && !added {
		c.Dropped(KindBinary, d.errorf("a shader's binary is not saved: too many files wait for the disk"))
	}
}

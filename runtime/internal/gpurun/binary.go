package gpurun

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/millrace-go/millrace/runtime"
)

// What a driver made of a text can be kept where the API hands it out. Entries are
// of one device and driver, as the scope in their keys says, and begin with a hash:
// drivers look at what they are given, but NVIDIA's crashes on a byte that changed.
// They are code, and as with the CPU's objects only the user's own cache may hold
// them: in bundles are the texts.

// KindBinary is the kind of a cache's entries that hold what the driver made of a
// shader, by the text's hash.
const KindBinary = "binary"

// Keeper is a Device that hands out what its driver made of shaders.
type Keeper interface {
	// Binary is what the driver made of a pipeline, nil where it keeps that to itself.
	Binary(p Pipeline) ([]byte, error)
	// NewPipelineOf makes a pipeline of it, to the byte. The error is ErrBinary where the
	// driver does not take it, as after it was updated.
	NewPipelineOf(binary []byte, bindings []Binding) (Pipeline, error)
}

// ErrBinary is a binary that is of no use to the driver.
var ErrBinary = errors.New("the driver does not take what it is said to have made")

// maxBinary bounds what is read and kept.
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

// hasBinary reports that the cache has what the driver made of a text.
func (d *Runner) hasBinary(source string) bool {
	k, cache := d.keeper()
	if k == nil {
		return false
	}
	_, ok := peek(cache, KindBinary, d.binaryKey(source))
	return ok
}

// kept is the pipeline of a text that an earlier process compiled; nil where there
// is none. An entry that is of no use is refused, which the cache counts.
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

// keep saves what the driver made of a text, in the background, once.
func (d *Runner) keep(source string, sh *compiled) {
	k, cache := d.keeper()
	if k == nil || !d.shaders.keeps(sh) {
		return
	}
	added := d.notes.queue.Add(func() {
		data, err := k.Binary(sh.pipe)
		if err != nil || len(data) == 0 || len(data) > maxBinary {
			return // it is compiled again the next time
		}
		sum := sha256.Sum256(data)
		_ = cache.Put(KindBinary, d.binaryKey(source), append(sum[:], data...)) // a failure is counted there
	})
	if c, ok := cache.(dropper); ok && !added {
		c.Dropped(KindBinary, d.errorf("what was made of a shader is not saved: too much waits for the disk"))
	}
}

package gpurun

import (
	"maps"
	"slices"
	"sync"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/internal/background"
	"github.com/millrace-go/millrace/runtime"
)

// maxSaves bounds the shaders that wait for the disk.
const maxSaves = 1024

// shaderNotes records which shaders ran, for caches and bundles, and compiles shaders in advance
// that ran in earlier processes.
type shaderNotes struct {
	dev   *Runner
	queue background.Queue[func()]
	aheads

	mu  sync.Mutex
	ran map[string]*noted // by their cache keys
}

// noted is a shader that ran, with the number of program variants that use it.
type noted struct {
	source string
	users  int
}

func (x *shaderNotes) init(d *Runner) {
	x.dev, x.ran = d, map[string]*noted{}
	x.queue.Limit = maxSaves
	x.queue.Do = func(f func()) {
		var err error
		defer d.guard(&err) // waiters for the queue must not wait for ever
		f()
	}
}

// notNoted stands for the key of a shader that is too long to store, or whose program is forgotten.
const notNoted = "-"

// note records a shader that runs under the key that keyOf makes, unless it is too long to store.
func (x *shaderNotes) note(v *variant, keyOf func() string) {
	rest := keyOf()
	kept := shader.NotesShader(rest, v.source)
	key := x.dev.caps.Scope() + "\n" + rest
	x.mu.Lock()
	switch {
	case v.noted != "": // noted meanwhile, or its program is forgotten
		x.mu.Unlock()
		return
	case !kept:
		v.noted = notNoted
	default:
		v.noted = key
	}
	v.told.Store(true)
	if !kept {
		x.mu.Unlock()
		return
	}
	n := x.ran[key]
	if n == nil {
		n = &noted{source: v.source}
		x.ran[key] = n
	}
	n.users++
	first := n.users == 1
	x.mu.Unlock()
	cache := x.dev.cfg.Cache
	if cache == nil || !first {
		return
	}
	if c, ok := cache.(dropper); !x.queue.Add(func() { save(cache, key, v.source) }) && ok {
		c.Dropped(runtime.KindShader, x.dev.errorf("a shader is not saved: too many wait for the disk"))
	}
	x.tellNext(rest)
}

// forget drops the notes of shaders that no known plan uses. Current Runs do not note them again.
func (x *shaderNotes) forget(list map[string]*variant) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, v := range list {
		if n := x.ran[v.noted]; n != nil {
			if n.users--; n.users == 0 {
				delete(x.ran, v.noted)
			}
		}
		v.noted = notNoted
		v.told.Store(true)
	}
}

// peeker is a cache with reads that are not counted.
type peeker interface {
	Peek(kind, key string) ([]byte, bool)
}

// dropper is a cache that counts entries that it was not given.
type dropper interface {
	Dropped(kind string, why error)
}

// peek reads the cache without counting, if it can.
func peek(cache runtime.Cache, kind, key string) ([]byte, bool) {
	if c, ok := cache.(peeker); ok {
		return c.Peek(kind, key)
	}
	return cache.Get(kind, key)
}

func save(cache runtime.Cache, key, source string) {
	if have, ok := peek(cache, runtime.KindShader, key); !ok || string(have) != source {
		_ = cache.Put(runtime.KindShader, key, []byte(source)) // the cache counts failures
	}
}

// Notes returns the shaders that ran.
func (d *Runner) Notes() (list []runtime.Note) {
	d.notes.mu.Lock()
	defer d.notes.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(d.notes.ran)) {
		list = append(list, runtime.Note{Kind: runtime.KindShader, Key: key, Value: d.notes.ran[key].source})
	}
	return list
}

func (d *Runner) prebuild(k *codegen.Kernel, v *shader.Variant, source string) error {
	if err := d.makeReady(k, v, source); err != nil {
		return err
	}
	// A Run must not wait for the whole queue of warm dispatches.
	return d.gpu.Wait()
}

func (d *Runner) makeReady(k *codegen.Kernel, v *shader.Variant, source string) error {
	sh := d.shaders.claimAhead(source)
	if sh == nil {
		return nil
	}
	d.finish(sh, k, v.Bindings)
	if sh.err != nil {
		return sh.err
	}
	defer d.shaders.drop(sh)
	return d.warm(sh, len(v.Bindings))
}

// warm dispatches a workgroup of a shader with words that give it no work: some drivers compile at
// the first dispatch.
func (d *Runner) warm(sh *compiled, bindings int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.spare) < bindings {
		b, err := d.memory.makeWords(spareSize, Storage)
		if err != nil {
			return err
		}
		d.spare = append(d.spare, b)
	}
	none := make([]byte, d.gpu.Info().Limits.Uniform) // no shader that can run declares more
	params, sent, err := d.params.hold(d, none)
	if err != nil {
		return err
	}
	x := Dispatch{Pipe: sh.pipe, Groups: [3]uint32{1, 1, 1}}
	for _, b := range d.spare[:bindings] {
		x.Bind = append(x.Bind, Range{Buf: b, Size: spareSize})
	}
	x.Bind = append(x.Bind, Range{Buf: params, Size: int64(len(none))})
	if sent {
		none = nil
	}
	if err := d.gpu.Submit([]Dispatch{x}, params, none); err != nil {
		d.params.forget()
		return err
	}
	return nil
}

// spareSize is the size of a buffer for warm: some elements of any shader.
const spareSize = 256

// wait returns when the queue is empty.
func (x *shaderNotes) wait() { x.queue.Wait() }

// stop drops optional work, and waits for the rest.
func (x *shaderNotes) stop() {
	x.ended.Store(true)
	x.mu.Lock()
	ran := len(x.order) > 0
	x.mu.Unlock()
	if ran {
		x.queue.Add(x.saveOrder)
	}
	x.wait()
}

var (
	_ runtime.Noter      = (*Runner)(nil)
	_ runtime.Prebuilder = (*Runner)(nil)
)

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

// shaderNotes notes which shaders ran, for caches and bundles, and has those compiled
// beforehand that ran in earlier processes.
type shaderNotes struct {
	dev   *Runner
	queue background.Queue[func()]
	aheads

	mu  sync.Mutex
	ran map[string]*noted // by the keys they are kept under
}

// noted is a shader that ran, and how many variants of programs have it.
type noted struct {
	source string
	users  int
}

func (x *shaderNotes) init(d *Runner) {
	x.dev, x.ran = d, map[string]*noted{}
	x.queue.Limit = maxSaves
	x.queue.Do = func(f func()) {
		var err error
		defer d.guard(&err) // who waits for the queue is not to wait for ever
		f()
	}
}

// notNoted stands for the key of a shader that is too long to be kept, and of one whose
// program is forgotten.
const notNoted = "-"

// note remembers a shader that runs, under the key that keyOf makes, unless it is too
// long to be kept.
func (x *shaderNotes) note(v *variant, keyOf func() string) {
	rest := keyOf()
	kept := shader.NotesShader(rest, v.source)
	key := x.dev.caps.Scope() + "\n" + rest
	x.mu.Lock()
	switch {
	case v.noted != "": // meanwhile, or its program is forgotten
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

// forget drops the notes of shaders that no known plan uses. Runs that are under way
// note them no more.
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

// peeker is a cache that can be looked into without anything being counted.
type peeker interface {
	Peek(kind, key string) ([]byte, bool)
}

// dropper is a cache that counts what it was not given.
type dropper interface {
	Dropped(kind string, why error)
}

// peek looks into a cache without being counted, where that can be.
func peek(cache runtime.Cache, kind, key string) ([]byte, bool) {
	if c, ok := cache.(peeker); ok {
		return c.Peek(kind, key)
	}
	return cache.Get(kind, key)
}

func save(cache runtime.Cache, key, source string) {
	if have, ok := peek(cache, runtime.KindShader, key); !ok || string(have) != source {
		_ = cache.Put(runtime.KindShader, key, []byte(source)) // a failure is counted there
	}
}

// Notes are the shaders that ran.
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
	// A Run is not to wait for all that would be in the queue otherwise.
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

// warm dispatches a workgroup of a shader that finds in its words that there is
// nothing to do: some drivers compile when they are first told to run something.
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
	none := make([]byte, d.gpu.Info().Limits.Uniform) // no shader that could run declares more
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

// spareSize is what is bound where nothing runs: some elements of any shader.
const spareSize = 256

// wait returns when nothing is left to do.
func (x *shaderNotes) wait() { x.queue.Wait() }

// stop drops what need not be done, and waits for the rest.
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

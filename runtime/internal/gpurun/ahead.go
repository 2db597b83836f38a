package gpurun

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/runtime"
)

// What a driver's compiler makes of a text takes it up to a second, and what it made
// is no use elsewhere, where it is handed out at all. So shaders that a process will
// probably run are compiled before it asks: those that a bundle has, and of those that
// the cache has the ones that the same program ran the last time. Nobody relies on
// them: a Run prints its own, and is quicker where the very same text is compiled.

// maxAhead bounds the shaders that a device compiles before anybody runs them: those of
// bundles, and as many of the cache.
const maxAhead = 256

// KindAhead is the kind of a cache's entries that say which shaders a program ran on a
// device the last time, by the keys that the cache has them under without the scope, in
// the order in which it ran them first.
const KindAhead = "ahead"

// maxAheadBytes bounds such an entry.
const maxAheadBytes = 1 << 20

// programName names the one that runs: its main package, as far as it is known.
var programName = func() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Path != "" {
		return info.Path
	}
	return filepath.Base(os.Args[0])
}()

// aheads is what a device compiles beforehand.
type aheads struct {
	ended   atomic.Bool // the device is being closed
	begun   atomic.Bool // a Run has come
	bundled int         // shaders of bundles that were read, by the queue

	// Of what the next process is told, guarded by the notes' lock.
	order   []string // as the entry has it
	telling bool     // the entry will be written
}

// Prebuild compiles shaders that ran elsewhere, one after another in the
// background. A Run waits for the one that is being compiled where it is the very one
// that it needs, and for what the driver itself does not do beside it.
func (d *Runner) Prebuild(entries iter.Seq2[string, []byte], refuse func(error)) {
	x := &d.notes
	x.queue.Add(func() { d.prebuildAll(entries, &x.bundled, x.ended.Load, refuse) })
}

// prebuildCached compiles shaders that the program ran the last time, until a Run comes:
// from then on the program says itself what it needs, and what it does not need is
// not to be in its way. What the driver made of a shader is loaded as fast as a Run
// asks for it.
func (d *Runner) prebuildCached() {
	x, cache := &d.notes, d.cfg.Cache
	if cache == nil {
		return
	}
	stop := func() bool { return x.ended.Load() || x.begun.Load() }
	x.queue.Add(func() {
		read := 0
		d.prebuildAll(func(yield func(string, []byte) bool) {
			for _, key := range x.readOrder() {
				if stop() {
					return
				}
				source, ok := cache.Get(runtime.KindShader, d.caps.Scope()+"\n"+key)
				if ok && !d.hasBinary(string(source)) && !yield(key, source) {
					return
				}
			}
		}, &read, stop, func(err error) { cache.Refuse(runtime.KindShader, err) })
	})
}

// prebuildAll compiles entries until it is to stop. read counts them.
func (d *Runner) prebuildAll(entries iter.Seq2[string, []byte], read *int, stop func() bool, refuse func(error)) {
	for key, source := range entries {
		if stop() || *read >= maxAhead {
			return
		}
		*read++
		k, v, err := shader.ReadNote(d.lang, key, string(source))
		if err == nil {
			err = d.prebuild(k, v, string(source))
		}
		if e := d.deviceError(err); e != err { // no fault of the entry
			if errors.Is(e, runtime.ErrOutOfMemory) { // the rest is compiled when it runs
				d.stats.fallbacks.Add(1)
				if d.cfg.OnError != nil {
					d.cfg.OnError(d.errorf("compiling shaders beforehand: %w", e))
				}
			}
			return // or it vanished, or is being closed
		}
		if err != nil {
			refuse(err)
		}
	}
}

// tellNext has the next process told of a shader that runs.
func (x *shaderNotes) tellNext(key string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.order) >= maxAhead || slices.Contains(x.order, key) {
		return
	}
	x.order = append(x.order, key)
	if !x.telling {
		x.telling = x.queue.Add(x.saveOrder) // else the next shader tries again
	}
}

func (x *shaderNotes) orderKey() string {
	return x.dev.caps.Scope() + "\nprogram " + programName
}

// readOrder is what an earlier process left.
func (x *shaderNotes) readOrder() (keys []string) {
	cache := x.dev.cfg.Cache
	data, ok := peek(cache, KindAhead, x.orderKey())
	if !ok {
		return nil
	}
	err := error(nil)
	if len(data) > maxAheadBytes {
		err = fmt.Errorf("%d bytes, at most %d are written", len(data), maxAheadBytes)
	} else if err = json.Unmarshal(data, &keys); err == nil && len(keys) > maxAhead {
		err = fmt.Errorf("%d keys, at most %d are written", len(keys), maxAhead)
	}
	if err != nil {
		cache.Refuse(KindAhead, x.dev.errorf("which shaders ran: %w", err))
		return nil
	}
	return keys
}

// saveOrder writes what ran in this process. As long as it does what the last one did it
// may do the rest of that, too.
func (x *shaderNotes) saveOrder() {
	x.mu.Lock()
	keys := slices.Clone(x.order)
	x.telling = false
	x.mu.Unlock()
	before := x.readOrder()
	same := len(keys) <= len(before) && slices.Equal(keys, before[:len(keys)])
	if same && (len(keys) == len(before) || !x.ended.Load()) {
		return
	}
	for {
		data, err := json.Marshal(keys)
		if err != nil {
			return // of strings, which there is none of
		}
		if len(data) <= maxAheadBytes {
			_ = x.dev.cfg.Cache.Put(KindAhead, x.orderKey(), data) // a failure is counted there
			return
		}
		keys = keys[:len(keys)/2]
	}
}

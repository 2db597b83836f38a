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

// A driver's compiler takes up to a second for a shader, and its result is useless on other
// devices, if the driver exports it at all. The device therefore compiles shaders in advance that
// the process will probably run: those of a bundle, and those in the cache that the same program
// ran last time. Nothing relies on them: a Run prints its own shaders, and is faster if the same
// text is compiled already.

// maxAhead bounds the shaders that a device compiles in advance: those of bundles, and as many of
// the cache.
const maxAhead = 256

// KindAhead is the kind of cache entries that list the shaders that a program ran on a device last
// time. An entry holds the shaders' cache keys without the scope, in the order of their first run.
const KindAhead = "ahead"

// maxAheadBytes bounds such an entry.
const maxAheadBytes = 1 << 20

// programName is the running program's main package, if known.
var programName = func() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Path != "" {
		return info.Path
	}
	return filepath.Base(os.Args[0])
}()

// aheads is the state of compiling in advance.
type aheads struct {
	ended   atomic.Bool // the device is being closed
	begun   atomic.Bool // a Run has begun
	bundled int         // shaders read from bundles, by the queue

	// The list for the next process, guarded by the notes' lock.
	order   []string // as in the entry
	telling bool     // writing of the entry is queued
}

// Prebuild compiles shaders that ran elsewhere, one after another in the background. A Run waits
// only for the shader that is being compiled if it needs that one, and for the driver if that does
// not work in parallel.
func (d *Runner) Prebuild(entries iter.Seq2[string, []byte], refuse func(error)) {
	x := &d.notes
	x.queue.Add(func() { d.prebuildAll(entries, &x.bundled, x.ended.Load, refuse) })
}

// prebuildCached compiles the shaders that the program ran last time, until the first Run. From
// then on the program's own requests show what it needs, and unneeded work must not delay it.
// Shaders with a stored binary are skipped: a Run loads them fast enough.
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

// prebuildAll compiles entries until stop returns true. read counts them.
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
		if e := d.deviceError(err); e != err { // not the entry's fault
			if errors.Is(e, runtime.ErrOutOfMemory) { // the rest is compiled when it runs
				d.stats.fallbacks.Add(1)
				if d.cfg.OnError != nil {
					d.cfg.OnError(d.errorf("compiling shaders before they are needed: %w", e))
				}
			}
			return // or it was lost, or is being closed
		}
		if err != nil {
			refuse(err)
		}
	}
}

// tellNext adds a shader to the list for the next process.
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

// readOrder returns the list of an earlier process.
func (x *shaderNotes) readOrder() (keys []string) {
	cache := x.dev.cfg.Cache
	data, ok := peek(cache, KindAhead, x.orderKey())
	if !ok {
		return nil
	}
	err := error(nil)
	if len(data) > maxAheadBytes {
		err = fmt.Errorf("it has %d bytes, the limit is %d", len(data), maxAheadBytes)
	} else if err = json.Unmarshal(data, &keys); err == nil && len(keys) > maxAhead {
		err = fmt.Errorf("it has %d keys, the limit is %d", len(keys), maxAhead)
	}
	if err != nil {
		cache.Refuse(KindAhead, x.dev.errorf("the list of shaders that ran: %w", err))
		return nil
	}
	return keys
}

// saveOrder writes the list of this process. As long as this process runs the shaders of the last
// one in the same order, the rest of the last one's list is kept, too.
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
			return // cannot happen for strings
		}
		if len(data) <= maxAheadBytes {
			_ = x.dev.cfg.Cache.Put(KindAhead, x.orderKey(), data) // the cache counts failures
			return
		}
		keys = keys[:len(keys)/2]
	}
}

//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// chunk is the size of a staging buffer. maxStaging bounds the pool of each direction: enough for two
// transfers.
const (
	chunk      = 8 << 20
	maxStaging = 4
)

// Directions, and the kinds of memory for them.
const (
	toDevice = iota
	toHost
)

var stagingKinds = [2]int{toDevice: upload, toHost: download}

// staging is memory of the host that the device copies from or to, and the last submissions of both
// queues that do. Small writes follow one another in it, and none waits for those before.
type staging struct {
	*Buffer
	value, moved uint64
	used         int64 // bytes at its start that submissions may still read
}

// room returns when a staging buffer has room for n bytes, and where.
func (s *staging) room(n int64) (at int64, err error) {
	if s.used > 0 && s.used+n <= chunk {
		return s.used, nil
	}
	d := s.slab.dev
	if err = d.main.waitFor(s.value); err == nil && s.moved > 0 {
		err = d.uploads.waitFor(s.moved)
	}
	s.used = 0
	return 0, err
}

// takeStaging takes a staging buffer from the pool: one with room for n bytes, else the oldest,
// whose copies are most likely done.
func (d *Device) takeStaging(way int, n int64) (*staging, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	if pool := d.staging[way]; len(pool) > 0 {
		i := max(slices.IndexFunc(pool, func(s *staging) bool { return s.used > 0 && s.used+n <= chunk }), 0)
		s := pool[i]
		d.staging[way] = slices.Delete(pool, i, i+1)
		return s, nil
	}
	b, err := d.newBuffer(chunk, gpurun.Private, stagingKinds[way])
	if err != nil {
		return nil, err
	}
	return &staging{Buffer: b}, nil
}

func (d *Device) keepStaging(way int, s *staging) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.staging[way]) >= maxStaging {
		s.Buffer.moved = s.moved
		d.release(s.Buffer)
		return
	}
	d.staging[way] = append(d.staging[way], s)
}

// direct returns the host's view of a buffer's bytes, after the submitted work that uses the buffer
// is done, and a function that ends the access. It returns nil if the host does not see them. It
// must be called between begin and end.
func (d *Device) direct(b *Buffer, off, n int64) (mem []byte, end func(), err error) {
	d.mu.Lock()
	err = b.ready(d, off, n)
	if err == nil {
		mem = b.host(off, n)
	}
	if mem == nil {
		d.mu.Unlock()
		return nil, nil, err
	}
	b.pin()
	last := b.last
	d.mu.Unlock()
	end = func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		b.unpin()
	}
	if err = d.main.waitFor(last); err == nil {
		err = d.Usable()
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	return mem, end, nil
}

// Write fills n bytes of buf at off. It calls fill for parts, with the position of each, for up to two
// at a time.
func (d *Device) Write(buf gpurun.Buffer, off, n int64, fill func(dst []byte, at int64)) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.end()
	b := own(buf)
	if n == 0 {
		return nil
	}
	if b != nil && b.use == gpurun.Uniform {
		fill = d.holding(b, off, fill)
	}
	mem, end, err := d.direct(b, off, n)
	if err != nil {
		return err
	}
	if mem != nil {
		defer end()
		for at := int64(0); at < n; at += chunk {
			fill(mem[at:min(at+chunk, n)], at)
		}
		return nil
	}
	return d.staged(toDevice, n, func(s *staging, at, size int64) error {
		from, err := s.room(size)
		if err != nil {
			return err
		}
		fill(s.host(from, size), at)
		s.used = (from + size + 63) &^ 63
		return d.send(s, from, b, off+at, size)
	})
}

// staged moves n bytes through staging memory in parts, which move moves. Two goroutines share the
// parts, each with a staging buffer of its own: the device copies for one while the processor copies
// for the other.
func (d *Device) staged(way int, n int64, move func(s *staging, at, size int64) error) error {
	var next atomic.Int64
	var failed atomic.Bool
	some := func() error {
		s, err := d.takeStaging(way, min(n, chunk))
		if err != nil {
			failed.Store(true)
			return err
		}
		defer d.keepStaging(way, s)
		for !failed.Load() {
			at := next.Add(chunk) - chunk
			if at >= n {
				break
			}
			if err := move(s, at, min(chunk, n-at)); err != nil {
				failed.Store(true)
				return err
			}
		}
		return nil
	}
	if n <= chunk {
		return some()
	}
	var beside error
	var wg sync.WaitGroup
	wg.Go(func() { beside = some() })
	err := some()
	wg.Wait()
	return errors.Join(err, beside)
}

// Read passes n bytes of buf at off to drain, as Write does. It waits for the work submitted before
// that uses buf.
func (d *Device) Read(buf gpurun.Buffer, off, n int64, drain func(src []byte, at int64)) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.end()
	b := own(buf)
	if n == 0 {
		return nil
	}
	mem, end, err := d.direct(b, off, n)
	if err != nil {
		return err
	}
	if mem != nil {
		defer end()
		for at := int64(0); at < n; at += chunk {
			drain(mem[at:min(at+chunk, n)], at)
		}
		return nil
	}
	return d.staged(toHost, n, func(s *staging, at, size int64) (err error) {
		if s.value, err = d.copy(b, off+at, s.Buffer, 0, size); err != nil {
			return err
		}
		if err = d.main.waitFor(s.value); err == nil {
			drain(s.host(0, size), at)
		}
		return err
	})
}

// copy submits a copy to the first queue and returns the number of its submission.
func (d *Device) copy(src *Buffer, srcOff int64, dst *Buffer, dstOff, n int64) (value uint64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return 0, err
	}
	if err := src.ready(d, srcOff, n); err != nil {
		return 0, err
	}
	err = d.copyNow(src, srcOff, dst, dstOff, n)
	return d.main.last, err
}

// copyNow is copy with the lock held.
func (d *Device) copyNow(src *Buffer, srcOff int64, dst *Buffer, dstOff, n int64) error {
	d.awaits(src)
	d.awaits(dst)
	err := d.submit(func(cmd uintptr) { d.copyRange(cmd, src, srcOff, dst, dstOff, n) })
	if err == nil {
		src.last, dst.last = d.main.last, d.main.last
	}
	return err
}

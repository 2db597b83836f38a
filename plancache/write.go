package plancache

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/millrace-go/millrace/internal/fault"
)

// temporary begins the names of files that are being written.
const temporary = "tmp"

// abandoned is the age from which a temporary file is no longer in use: writing one takes much
// less.
const abandoned = 15 * time.Minute

// giveUp is the number of failed writes in a row after which no more are tried. The disk may be
// full, or the directory read-only.
const giveUp = 3

// Put stores an entry and replaces one with the same kind and key. A failure is counted and reported
// to the hook, so callers may ignore the error. A kind is 1 to 16 letters a to z.
func (c *Cache) Put(kind, key string, value []byte) error {
	if c == nil {
		return nil
	}
	if !validKind(kind) {
		return fmt.Errorf("plancache: kind %q is not 1 to 16 letters a to z", kind)
	}
	data := encode(kind, key, value)
	if n := int64(len(data)); n > maxEntry || n > c.limit {
		return fmt.Errorf("plancache: an entry of %d bytes is too large for a cache of %d", n, c.limit)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count.disabled.Load() {
		return errDisabled
	}
	begin := time.Now()
	if err := c.write(nameOf(kind, key), data); err != nil {
		if c.faults++; c.faults >= giveUp {
			c.count.disabled.Store(true)
		}
		err = fmt.Errorf("cache directory %s: %w", c.dir, err)
		c.tell(Event{Kind: kind, Outcome: Failed, Elapsed: time.Since(begin), Err: err})
		return err
	}
	c.faults = 0
	c.tell(Event{Kind: kind, Outcome: Written, Bytes: int64(len(value)), Elapsed: time.Since(begin)})
	c.grown(int64(len(data)))
	return nil
}

var errDisabled = errors.New("plancache: writing failed too often and is not tried again")

// write completes a temporary file, then gives it its name. The caller holds the lock.
func (c *Cache) write(name string, data []byte) (err error) {
	c.number++
	tmp := fmt.Sprintf("%s-%d-%d-%x", temporary, os.Getpid(), c.number, time.Now().UnixNano())
	if err := fault.Hit(fault.File); err != nil {
		return err
	}
	f, err := c.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			c.root.Remove(tmp)
		}
	}()
	for _, step := range []func() error{
		func() error { _, err := f.Write(data); return err },
		f.Sync,
		f.Close,
		func() error { return c.root.Rename(tmp, name) },
	} {
		if err := fault.Hit(fault.File); err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// grown keeps the cache within its limit after n bytes were written. Other processes write, too, so
// it sometimes counts all files again. The caller holds the lock.
func (c *Cache) grown(n int64) {
	c.size += n
	c.since += n
	if c.known && c.size <= c.limit && c.since < c.limit/16 {
		return
	}
	files, err := c.list()
	if err != nil {
		c.tell(Event{Outcome: Failed, Err: err})
		return
	}
	c.known, c.since, c.size = true, 0, 0
	for i := range files {
		if f := &files[i]; f.temporary() && time.Since(f.Used) > abandoned {
			c.root.Remove(f.Name) // left by a process that was killed
		} else {
			c.size += f.Bytes
		}
	}
	if c.size > c.limit {
		c.evict(files)
	}
}

// evict removes the files unused for longest. Several processes may do so at once: they choose the
// same files. A process that is reading a removed file has it open and can read it to the end. A
// file that was used after it was listed stays.
func (c *Cache) evict(files []File) {
	sortByUse(files)
	target := c.limit - c.limit/8
	for i := range files {
		f := &files[i]
		if c.size <= target {
			return
		}
		if f.temporary() {
			continue
		}
		is, err := c.root.Lstat(f.Name)
		if err == nil && is.ModTime().After(f.Used) {
			continue
		}
		if err == nil {
			err = c.root.Remove(f.Name)
		}
		switch {
		case err == nil:
			c.tell(Event{Kind: f.Kind(), Outcome: Evicted, Bytes: f.Bytes})
		case !errors.Is(err, os.ErrNotExist):
			c.tell(Event{Kind: f.Kind(), Outcome: Failed, Err: err})
			continue
		}
		c.size -= f.Bytes
	}
}

// File is one file of a cache.
type File struct {
	Name  string
	Bytes int64
	Used  time.Time // last use, exact to the hour
}

// Kind returns the kind of the entry, from the file's name.
func (f *File) Kind() string {
	kind, _, _ := strings.Cut(f.Name, "-")
	return kind
}

func (f *File) temporary() bool { return f.Kind() == temporary }

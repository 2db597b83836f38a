package plancache

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-go/millrace/internal/fault"
)

// DefaultLimit is the size that a cache is kept to.
const DefaultLimit = 512 << 20

// touchAfter is how old the mark of an entry's last use may become before a
// use marks it anew: a file is not written to for every read.
const touchAfter = time.Hour

// Options of a cache. The zero value works.
type Options struct {
	Limit   int64       // bytes; 0: DefaultLimit
	OnEvent func(Event) // told of everything that is counted; may be called from any goroutine
}

// Outcome says how it went.
type Outcome string

// The outcomes, each with a counter in [Stats].
const (
	Hit     Outcome = "hit"
	Miss    Outcome = "miss"    // there is no such entry
	Damaged Outcome = "damaged" // there was a file, but no entry in it: a miss, too
	Refused Outcome = "refused" // the directory, or what the entry holds
	Written Outcome = "written"
	Evicted Outcome = "evicted"
	Failed  Outcome = "failed" // a file operation, or there was no time for one

	// Those of bundles, which a cache knows nothing of. Damaged and Refused are
	// theirs, too.
	Bundled Outcome = "bundled" // a hit in a bundle
	Foreign Outcome = "foreign" // entries of a bundle are of no use to a device
)

// Event is one thing that happened to a cache.
type Event struct {
	Kind    string // of the entry; "" for the cache itself
	Outcome Outcome
	Bytes   int64 // of the entry
	Elapsed time.Duration
	Err     error // of Damaged, Refused, Failed and Foreign
}

// Stats counts events since the cache was opened.
type Stats struct {
	Hits, Misses   int64
	Damaged        int64 // of the misses, those with a file that was no entry
	Refused        int64 // directories that were not used, and entries whose contents were not
	Written        int64
	Evicted        int64
	Failed         int64 // file operations that failed, and entries that never came to one
	ReadNanos      int64 // in Get
	BytesRead      int64
	BytesWritten   int64
	WritesDisabled bool // after failures in a row

	// Of the bundles that a device uses, which a cache knows nothing of.
	Bundled int64 // entries that were found in one; no misses, whether the cache has them or not
	Foreign int64 // entries that are of no use to the device
}

// Cache is an open directory. A nil Cache holds nothing and takes nothing. All
// methods are safe for concurrent use.
type Cache struct {
	dir   string
	root  *os.Root
	limit int64
	event func(Event)
	count counters

	mu     sync.Mutex // one writer at a time
	known  bool       // size is
	size   int64      // of all entries, as far as this process knows
	since  int64      // bytes written since it was counted
	faults int        // writes that failed in a row
	number int64      // of temporary files
}

type counters struct {
	hits, misses, damaged, refused, written, evicted, failed atomic.Int64
	readNanos, bytesRead, bytesWritten                       atomic.Int64
	disabled                                                 atomic.Bool
}

// Open opens the cache in a directory, which it makes if need be. A directory
// that is not the user's own is refused with a *RefusedError.
func Open(dir string, o Options) (*Cache, error) {
	root, err := openPrivate(dir)
	if err != nil {
		return nil, err
	}
	c := &Cache{dir: dir, root: root, limit: o.Limit, event: o.OnEvent}
	if c.limit <= 0 {
		c.limit = DefaultLimit
	}
	return c, nil
}

// Dir is the directory that the cache was opened in.
func (c *Cache) Dir() string {
	if c == nil {
		return Off
	}
	return c.dir
}

// Close gives the directory's descriptor back.
func (c *Cache) Close() error {
	if c == nil {
		return nil
	}
	return c.root.Close()
}

// Stats are the counters.
func (c *Cache) Stats() Stats {
	if c == nil {
		return Stats{}
	}
	n := &c.count
	return Stats{
		Hits: n.hits.Load(), Misses: n.misses.Load(), Damaged: n.damaged.Load(), Refused: n.refused.Load(),
		Written: n.written.Load(), Evicted: n.evicted.Load(), Failed: n.failed.Load(),
		ReadNanos: n.readNanos.Load(), BytesRead: n.bytesRead.Load(), BytesWritten: n.bytesWritten.Load(),
		WritesDisabled: n.disabled.Load(),
	}
}

// tell counts an event and hands it on.
func (c *Cache) tell(e Event) {
	n := &c.count
	switch e.Outcome {
	case Hit:
		n.hits.Add(1)
		n.bytesRead.Add(e.Bytes)
	case Miss:
		n.misses.Add(1)
	case Damaged:
		n.misses.Add(1)
		n.damaged.Add(1)
	case Refused:
		n.refused.Add(1)
	case Written:
		n.written.Add(1)
		n.bytesWritten.Add(e.Bytes)
	case Evicted:
		n.evicted.Add(1)
	case Failed:
		n.failed.Add(1)
	}
	if c.event != nil {
		c.event(e)
	}
}

// Get finds an entry. A file that is none, or that cannot be read, is a miss.
func (c *Cache) Get(kind, key string) ([]byte, bool) {
	if c == nil {
		return nil, false
	}
	begin := time.Now()
	name := nameOf(kind, key)
	e, used, err := c.read(name)
	if err == nil && (e.Kind != kind || e.Key != key) {
		err = errForeign
	}
	ev := Event{Kind: kind, Outcome: Hit, Bytes: int64(len(e.Value)), Elapsed: time.Since(begin)}
	c.count.readNanos.Add(int64(ev.Elapsed))
	switch {
	case err == nil:
	case errors.Is(err, os.ErrNotExist):
		ev.Outcome = Miss
	case damage(err):
		ev.Outcome, ev.Err = Damaged, c.named(name, err)
	default:
		c.tell(Event{Kind: kind, Outcome: Failed, Err: c.named(name, err)})
		ev.Outcome = Miss
	}
	c.tell(ev)
	if err != nil {
		return nil, false
	}
	if time.Since(used) > touchAfter && !c.count.disabled.Load() {
		now := time.Now()
		if err := c.root.Chtimes(name, now, now); err != nil && !errors.Is(err, os.ErrNotExist) {
			c.tell(Event{Kind: kind, Outcome: Failed, Err: err})
		}
	}
	return e.Value, true
}

// Peek is Get for those who are about to Put: nothing is counted.
func (c *Cache) Peek(kind, key string) ([]byte, bool) {
	if c == nil {
		return nil, false
	}
	e, _, err := c.read(nameOf(kind, key))
	return e.Value, err == nil && e.Kind == kind && e.Key == key
}

// Refuse says that an entry that was found is of no use after all: what it
// holds could not be understood. It is counted, and the next Put replaces it.
func (c *Cache) Refuse(kind string, why error) {
	if c != nil {
		c.tell(Event{Kind: kind, Outcome: Refused, Err: why})
	}
}

// Dropped counts an entry that was not written, as more came than the disk takes.
func (c *Cache) Dropped(kind string, why error) {
	if c != nil {
		c.tell(Event{Kind: kind, Outcome: Failed, Err: why})
	}
}

func damage(err error) bool {
	for _, d := range []error{errLength, errMagic, errVersion, errHash, errForeign, errNoFile} {
		if err == d {
			return true
		}
	}
	return false
}

func (c *Cache) named(name string, err error) error {
	return fmt.Errorf("cache entry %s in %s: %w", name, c.dir, err)
}

var errNoFile = errors.New("it is no plain file")

// read reads a file of the cache, and when it was used last.
func (c *Cache) read(name string) (Entry, time.Time, error) {
	none := time.Time{}
	if err := fault.Hit(fault.File); err != nil {
		return Entry{}, none, err
	}
	is, err := c.root.Lstat(name) // opening a pipe would wait
	if err != nil {
		return Entry{}, none, err
	}
	if !is.Mode().IsRegular() {
		return Entry{}, none, errNoFile
	}
	f, err := c.root.Open(name)
	if err != nil {
		return Entry{}, none, err
	}
	defer f.Close()
	if is, err = f.Stat(); err != nil {
		return Entry{}, none, err
	}
	if !is.Mode().IsRegular() || is.Size() > maxEntry {
		return Entry{}, none, errNoFile
	}
	data := make([]byte, is.Size())
	if _, err := io.ReadFull(f, data); err == io.EOF || err == io.ErrUnexpectedEOF {
		return Entry{}, none, errLength // it was made shorter meanwhile
	} else if err != nil {
		return Entry{}, none, err
	}
	e, err := decode(data)
	return e, is.ModTime(), err
}

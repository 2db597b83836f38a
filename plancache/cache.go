package plancache

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-go/millrace/internal/fault"
)

// DefaultLimit is the largest size of a cache in bytes, if Options do not set one.
const DefaultLimit = 512 << 20

// touchAfter is the age at which a use renews an entry's time of last use. So a read seldom writes
// to the disk.
const touchAfter = time.Hour

// Options of a cache. The zero value works.
type Options struct {
	Limit   int64       // bytes; 0: DefaultLimit
	OnEvent func(Event) // called for everything that is counted; may be called from any goroutine
}

// Outcome is the result of an operation.
type Outcome string

// The outcomes, each with a counter in [Stats].
const (
	Hit     Outcome = "hit"
	Miss    Outcome = "miss"    // there is no such entry
	Damaged Outcome = "damaged" // the file is not a valid entry; also a miss
	Refused Outcome = "refused" // the directory is not safe, or an entry's contents are of no use
	Written Outcome = "written"
	Evicted Outcome = "evicted"
	Failed  Outcome = "failed" // a file operation failed, or there were too many to do

	// Outcomes of bundles; a Cache does not produce them. Bundles also have Damaged and Refused.
	Bundled Outcome = "bundled" // a hit in a bundle
	Foreign Outcome = "foreign" // a device cannot use some entries of a bundle
)

// Event is one outcome in a cache or a bundle.
type Event struct {
	Kind    string // of the entry; "" for the cache itself
	Outcome Outcome
	Bytes   int64 // of the entry
	Elapsed time.Duration
	Err     error // for Damaged, Refused, Failed and Foreign
}

// Stats counts events since the cache was opened.
type Stats struct {
	Hits, Misses   int64
	Damaged        int64 // misses because a file was not a valid entry
	Refused        int64 // directories that are not safe, and entries whose contents are of no use
	Written        int64
	Evicted        int64
	Failed         int64 // file operations that failed, and entries that were dropped before one
	ReadNanos      int64 // in Get
	BytesRead      int64
	BytesWritten   int64
	WritesDisabled bool // after giveUp failures in a row

	// Counters of the bundles that a device uses; a Cache leaves them 0.
	Bundled int64 // entries found in a bundle; entries missing in a bundle are not counted
	Foreign int64 // entries that the device cannot use
}

// Cache is an open directory. A nil Cache finds and stores nothing. All methods are safe for
// concurrent use.
type Cache struct {
	dir   string
	root  *os.Root
	limit int64
	event func(Event)
	count counters

	mu     sync.Mutex // allows one writer at a time
	known  bool       // size was counted
	size   int64      // of all entries, as far as this process knows
	since  int64      // bytes written since the last count
	faults int        // writes that failed in a row
	number int64      // number of temporary files made
}

type counters struct {
	hits, misses, damaged, refused, written, evicted, failed atomic.Int64
	readNanos, bytesRead, bytesWritten                       atomic.Int64
	disabled                                                 atomic.Bool
}

// Open opens the cache in a directory, and makes the directory if needed. If others could write to
// the directory, the error is a *RefusedError.
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

// Dir returns the directory of the cache, or Off.
func (c *Cache) Dir() string {
	if c == nil {
		return Off
	}
	return c.dir
}

// Close closes the directory.
func (c *Cache) Close() error {
	if c == nil {
		return nil
	}
	return c.root.Close()
}

// Stats returns the counters.
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

// tell counts an event and passes it to the hook.
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

// Get finds an entry. A file that is invalid or cannot be read is a miss.
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

// Peek is Get without counting, for callers that are about to call Put.
func (c *Cache) Peek(kind, key string) ([]byte, bool) {
	if c == nil {
		return nil, false
	}
	e, _, err := c.read(nameOf(kind, key))
	return e.Value, err == nil && e.Kind == kind && e.Key == key
}

// Refuse counts a found entry whose contents could not be understood. The next Put replaces it.
func (c *Cache) Refuse(kind string, why error) {
	if c != nil {
		c.tell(Event{Kind: kind, Outcome: Refused, Err: why})
	}
}

// Dropped counts an entry that was not written because too many wait for the disk.
func (c *Cache) Dropped(kind string, why error) {
	if c != nil {
		c.tell(Event{Kind: kind, Outcome: Failed, Err: why})
	}
}

func damage(err error) bool {
	return slices.ContainsFunc([]error{errLength, errMagic, errVersion, errHash, errForeign, errNoFile}, func(d error) bool { return err == d })
}

func (c *Cache) named(name string, err error) error {
	return fmt.Errorf("cache entry %s in %s: %w", name, c.dir, err)
}

var errNoFile = errors.New("it is not a regular file")

// read reads a file of the cache and the time of its last use.
func (c *Cache) read(name string) (Entry, time.Time, error) {
	none := time.Time{}
	if err := fault.Hit(fault.File); err != nil {
		return Entry{}, none, err
	}
	is, err := c.root.Lstat(name) // opening a pipe would block
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
		return Entry{}, none, errLength // the file became shorter meanwhile
	} else if err != nil {
		return Entry{}, none, err
	}
	e, err := decode(data)
	return e, is.ModTime(), err
}

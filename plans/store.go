package plans

import (
	"sync/atomic"

	"github.com/millrace-go/millrace/device"
	"github.com/millrace-go/millrace/internal/background"
	"github.com/millrace-go/millrace/internal/force"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
	"github.com/millrace-go/millrace/shelf"
)

// Store is what a device knows of plans: a trie of those in use, and what looks for
// better ones, remembers them on disk and finds them there, or in bundles.
type Store struct {
	*device.Base
	shelf  *shelf.Shelf
	Trie   *segment.Trie[queue.Key, *Known]
	Attrs  queue.Interner // of keys
	Search searcher
	saves  background.Queue[saving]

	Unpaid atomic.Int32 // explorations since one was of use: see find
	Quick  int          // effort of searches that are waited for
}

// planLimit bounds the plans of the trie; each is a few kilobytes.
const planLimit = 4096

// Init readies the store of an open device.
func (p *Store) Init(d *device.Base, kept *shelf.Shelf) {
	p.Base, p.shelf, p.Quick = d, kept, QuickEffort
	p.Trie = segment.NewTrie[queue.Key, *Known](force.Plans(planLimit), queue.Legal)
	p.Trie.OnDrop(p.Retired)
	p.Search.init(p)
	p.saves.Do, p.saves.Limit = p.write, maxSaves
}

// Retired is the end of a plan: it will not be found any more.
func (p *Store) Retired(e *Known) { p.Retire(e.Progs) }

// Query is a queued segment that a plan is asked for. Its slices are the queue's.
type Query struct {
	*Store
	At      *segment.Node[queue.Key, *Known] // where it is in the trie
	Seg     *segment.Segment
	End     segment.End
	Entries []queue.Item
	Scalars []queue.Scalar
	Lines   []string // where its nodes were recorded, as far as known
}

package planstore

import (
	"sync/atomic"

	"github.com/millrace-go/millrace/internal/background"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/plancache/lookup"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
)

// Store holds the plans of a device: a trie of those in use, the search for better ones, and
// access to saved ones on disk and in bundles.
type Store struct {
	*device.Base
	finder *lookup.Finder
	Trie   *segment.Trie[queue.Key, *Known]
	Attrs  queue.Interner // of the attributes in keys
	Search searcher
	saves  background.Queue[saving]

	Unpaid atomic.Int32 // explorations since the last one whose plan was found again; see GreedyAfter
	Quick  int          // effort of searches that the program waits for

	Foresight Foresight
}

// planLimit limits the plans in the trie; each takes a few kilobytes.
const planLimit = 4096

// Init prepares the Store of an open device.
func (p *Store) Init(d *device.Base, kept *lookup.Finder) {
	p.Base, p.finder, p.Quick, p.Foresight = d, kept, QuickEffort, foresight
	p.Trie = segment.NewTrie[queue.Key, *Known](testhook.Plans(planLimit), queue.Legal)
	p.Trie.OnDrop(p.Retired)
	p.Search.init(p)
	p.saves.Do, p.saves.Limit = p.write, maxSaves
}

// Retired frees the programs of a plan that can no longer be found.
func (p *Store) Retired(e *Known) { p.Retire(e.Progs) }

// Query is a queued segment that needs a plan. Its slices belong to the queue.
type Query struct {
	*Store
	At      *segment.Node[queue.Key, *Known] // its place in the trie
	Seg     *segment.Segment
	End     segment.End
	Entries []queue.Item
	Scalars []queue.Scalar
	Lines   []string // source lines of its nodes, where known
}

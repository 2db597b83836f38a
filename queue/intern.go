package queue

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace-go/millrace/ir"
)

// Interner numbers the parts of relative operations that vary in length: axes and reshape groups.
// Numbers start at 1; 0 means "no attribute". There is one Interner per device, so all its streams
// use the same numbers.
type Interner struct {
	mu    sync.RWMutex
	byKey map[uint64][]interned
	blobs [][]byte // index: number minus one
}

type interned struct {
	blob []byte
	id   uint32
}

// ID finds or makes the number of a blob.
func (in *Interner) ID(blob []byte) uint32 {
	h := xxhash.Sum64(blob)
	in.mu.RLock()
	id := find(in.byKey[h], blob)
	in.mu.RUnlock()
	if id != 0 {
		return id
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if id := find(in.byKey[h], blob); id != 0 {
		return id
	}
	if in.byKey == nil {
		in.byKey = make(map[uint64][]interned)
	}
	blob = slices.Clone(blob)
	in.blobs = append(in.blobs, blob)
	n := uint32(len(in.blobs))
	in.byKey[h] = append(in.byKey[h], interned{blob, n})
	return n
}

// blob returns the blob with that number, nil for 0.
func (in *Interner) blob(id uint32) []byte {
	in.mu.RLock()
	defer in.mu.RUnlock()
	if id == 0 || int(id) > len(in.blobs) {
		return nil
	}
	return in.blobs[id-1]
}

func find(list []interned, blob []byte) uint32 {
	for _, e := range list {
		if slices.Equal(e.blob, blob) { // equal hashes do not prove equal blobs
			return e.id
		}
	}
	return 0
}

// attr returns the number of the attributes of a node that belong to its relative form. Slice
// bounds do not belong to it: they are run-time values.
func (in *Interner) attr(n *ir.Node, arg ir.Shape) uint32 {
	var room [64]byte
	blob := room[:0]
	switch n.Op {
	case ir.Reshape:
		blob = append(blob, 'r')
		ir.EachRun(arg, n.Shape, func(i0, i1, j0, j1 int) {
			blob = append(blob, byte(i1-i0), byte(j1-j0))
		})
	default:
		if n.Attr == nil || n.Attr.Axes == nil {
			return 0
		}
		blob = append(blob, 'a', flag(n.Attr.Keep), flag(n.Attr.Descending), byte(n.Attr.Mode), byte(n.Attr.Combine))
		for _, a := range n.Attr.Axes {
			blob = binary.AppendVarint(blob, int64(a))
		}
	}
	return in.ID(blob)
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

package plancache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace-go/millrace/internal/sniff"
)

// BundleVersion is the version of a bundle's format: not of what its entries
// hold.
const BundleVersion = 1

// A bundle is entries in one piece, to be shipped with a program. Numbers are
// little-endian:
//
//	magic    8 bytes
//	version  uint32
//	groups   uint32, how many
//	entries  uint32, how many
//	made     uint32, the length of a note for people
//	length   uint64, of the whole bundle
//	the note
//	the groups, by kind and scope: two uint32, the lengths of kind and scope; both
//	the index: for every entry, by group and hash,
//	  hash   uint64, xxhash64 of its key
//	  check  uint64, xxhash64 of its body
//	  group  uint32
//	  key    uint32, the length of the key behind the scope and its line feed
//	  value  uint64, the length of the value
//	  at     uint64, where its body begins
//	check    uint64, xxhash64 of everything before it
//	the bodies in the order of the index: the rest of a key, then a value
//
// So a bundle is opened by looking at its beginning, and an entry is looked at
// when somebody asks for it. A changed byte in a body costs that entry, one
// before the bodies the bundle.
const (
	bundleMagic  = "mrbundle"
	bundleHeader = len(bundleMagic) + 4 + 4 + 4 + 4 + 8
	groupHeader  = 4 + 4
	indexSize    = 8 + 8 + 4 + 4 + 8 + 8
)

// Group is what a bundle says of entries that have their kind and scope in
// common.
type Group struct {
	Kind, Scope string
	Entries     int
}

// Bundle is an open bundle. It is never changed.
type Bundle struct {
	data   []byte
	made   string
	groups []Group
	starts []int // of the groups in the index
	index  []byte
	id     uint64
}

// Errors of what is no bundle.
var (
	errBundleMagic  = errors.New("it does not begin as bundles do")
	errBundleLength = errors.New("its length is not what it says")
	errBundleHash   = errors.New("its bytes are not those that were written")
	errBundleOrder  = errors.New("its index is not in order")
)

// BundleVersionError says that a bundle has a format that this program does not
// read.
type BundleVersionError struct{ Version uint32 }

func (e *BundleVersionError) Error() string {
	return fmt.Sprintf("its format is version %d, this program reads version %d", e.Version, BundleVersion)
}

// ReadBundle opens a bundle, looking only at its beginning. The bytes are kept
// and must not be changed any more. Lengths that are not true are errors and
// make nothing larger than the bytes are.
func ReadBundle(data []byte) (*Bundle, error) {
	if len(data) < len(bundleMagic) || string(data[:len(bundleMagic)]) != bundleMagic {
		return nil, sniff.With(errBundleMagic, data, sniff.Bundle)
	}
	if len(data) < bundleHeader+hashSize {
		return nil, errBundleLength
	}
	at := data[len(bundleMagic):]
	if v := binary.LittleEndian.Uint32(at); v != BundleVersion {
		return nil, &BundleVersionError{v}
	}
	groups, entries := binary.LittleEndian.Uint32(at[4:]), binary.LittleEndian.Uint32(at[8:])
	made, length := binary.LittleEndian.Uint32(at[12:]), binary.LittleEndian.Uint64(at[16:])
	if length != uint64(len(data)) {
		return nil, fmt.Errorf("%w: %d bytes of %d", errBundleLength, len(data), length)
	}
	b := &Bundle{data: data}
	rest := data[bundleHeader:]
	note, ok := cut(&rest, uint64(made))
	if !ok {
		return nil, errBundleLength
	}
	b.made = string(note)
	for range groups {
		head, ok := cut(&rest, uint64(groupHeader))
		if !ok {
			return nil, errBundleLength
		}
		kind, okKind := cut(&rest, uint64(binary.LittleEndian.Uint32(head)))
		scope, okScope := cut(&rest, uint64(binary.LittleEndian.Uint32(head[4:])))
		if !okKind || !okScope {
			return nil, errBundleLength
		}
		b.groups = append(b.groups, Group{Kind: string(kind), Scope: string(scope)})
	}
	if b.index, ok = cut(&rest, uint64(entries)*uint64(indexSize)); !ok {
		return nil, errBundleLength
	}
	end := len(data) - len(rest)
	check, ok := cut(&rest, uint64(hashSize))
	if !ok {
		return nil, errBundleLength
	}
	b.id = xxhash.Sum64(data[:end])
	if b.id != binary.LittleEndian.Uint64(check) {
		return nil, errBundleHash
	}
	return b, b.checkIndex(uint64(end + hashSize))
}

// cut takes n bytes from the front.
func cut(rest *[]byte, n uint64) ([]byte, bool) {
	if n > uint64(len(*rest)) {
		return nil, false
	}
	head := (*rest)[:n:n]
	*rest = (*rest)[n:]
	return head, true
}

// checkIndex checks that the index is in order and that bodies lie one behind
// another from at to the end. It counts the groups' entries.
func (b *Bundle) checkIndex(at uint64) error {
	b.starts = make([]int, len(b.groups)+1)
	group, hash := uint32(0), uint64(0)
	for i := range b.Len() {
		e := b.entry(i)
		if e.group < group || e.group == group && e.hash < hash || uint64(e.group) >= uint64(len(b.groups)) {
			return errBundleOrder
		}
		group, hash = e.group, e.hash
		rest := uint64(len(b.data)) - at
		if e.at != at || e.value > rest || uint64(e.key) > rest-e.value {
			return errBundleLength
		}
		at += uint64(e.key) + e.value
		b.groups[group].Entries++
	}
	if at != uint64(len(b.data)) {
		return errBundleLength
	}
	for i := range b.groups {
		b.starts[i+1] = b.starts[i] + b.groups[i].Entries
		if i > 0 && !before(&b.groups[i-1], &b.groups[i]) {
			return errBundleOrder
		}
	}
	return nil
}

func before(a, b *Group) bool { return a.Kind < b.Kind || a.Kind == b.Kind && a.Scope < b.Scope }

// indexed is a line of the index.
type indexed struct {
	hash, check uint64
	group, key  uint32
	value, at   uint64
}

func (b *Bundle) entry(i int) indexed {
	e := b.index[i*indexSize:]
	return indexed{
		hash: binary.LittleEndian.Uint64(e), check: binary.LittleEndian.Uint64(e[8:]),
		group: binary.LittleEndian.Uint32(e[16:]), key: binary.LittleEndian.Uint32(e[20:]),
		value: binary.LittleEndian.Uint64(e[24:]), at: binary.LittleEndian.Uint64(e[32:]),
	}
}

// Made is the note of whoever wrote the bundle.
func (b *Bundle) Made() string { return b.made }

// ID is of the bundle's content: bundles of one ID are equal.
func (b *Bundle) ID() uint64 { return b.id }

// Len is the number of entries.
func (b *Bundle) Len() int { return len(b.index) / indexSize }

// Groups are the bundle's, by kind and scope. The list must not be changed.
func (b *Bundle) Groups() []Group { return b.groups }

// Get finds an entry by the kind, and the lines of its key: its scope and what
// comes after. The value is a part of the bundle. An error says that the entry
// is there and damaged.
func (b *Bundle) Get(kind, scope, key string) (value []byte, found bool, err error) {
	for g := range b.groups {
		if b.groups[g].Kind != kind || b.groups[g].Scope != scope {
			continue
		}
		hash := hashOf(key)
		from, to := b.starts[g], b.starts[g+1]
		for from < to {
			if mid := (from + to) / 2; b.entry(mid).hash < hash {
				from = mid + 1
			} else {
				to = mid
			}
		}
		for ; from < b.starts[g+1]; from++ {
			e := b.entry(from)
			if e.hash != hash {
				break
			}
			have, value, err := b.body(from)
			if err != nil {
				return nil, false, err
			}
			if have == key {
				return value, true, nil
			}
		}
	}
	return nil, false, nil
}

func hashOf(key string) uint64 { return xxhash.Sum64String(key) }

// body is the rest of the key of an entry, and its value.
func (b *Bundle) body(i int) (key string, value []byte, err error) {
	e := b.entry(i)
	body := b.data[e.at : e.at+uint64(e.key)+e.value : e.at+uint64(e.key)+e.value]
	if xxhash.Sum64(body) != e.check {
		return "", nil, fmt.Errorf("entry %d of the bundle: %w", i, errBundleHash)
	}
	key = string(body[:e.key])
	if hashOf(key) != e.hash {
		return "", nil, fmt.Errorf("entry %d of the bundle: %w", i, errBundleOrder)
	}
	return key, body[e.key:], nil
}

// Entry reads the entry at a place, of those below Len. Of one that is damaged
// only the kind and scope are right, as the first line of its key.
func (b *Bundle) Entry(i int) (Entry, error) {
	g := &b.groups[b.entry(i).group]
	key, value, err := b.body(i)
	return Entry{g.Kind, JoinKey(g.Scope, key), value}, err
}

// Keys lists the places of the entries of a kind and scope, and what their keys
// have behind the scope. Nothing is checked: an entry may be damaged.
func (b *Bundle) Keys(kind, scope string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i := range b.Len() {
			e := b.entry(i)
			if g := &b.groups[e.group]; g.Kind != kind || g.Scope != scope {
				continue
			}
			if !yield(i, string(b.data[e.at:e.at+uint64(e.key)])) {
				return
			}
		}
	}
}

// All reads every entry, in the order of kind, scope and hash.
func (b *Bundle) All() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for i := range b.Len() {
			if !yield(b.Entry(i)) {
				return
			}
		}
	}
}

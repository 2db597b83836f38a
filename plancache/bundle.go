package plancache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace-go/millrace/internal/sniff"
)

// BundleVersion is the version of a bundle's format, not of its entries' contents.
const BundleVersion = 1

// A bundle is a list of entries in one file, shipped with a program. Numbers are little-endian:
//
//	magic    8 bytes
//	version  uint32
//	groups   uint32, their number
//	entries  uint32, their number
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
// Opening a bundle reads only the part before the bodies. An entry is read when it is needed. A
// changed byte in a body makes that entry invalid, one before the bodies the whole bundle.
const (
	bundleMagic  = "mrbundle"
	bundleHeader = len(bundleMagic) + 4 + 4 + 4 + 4 + 8
	groupHeader  = 4 + 4
	indexSize    = 8 + 8 + 4 + 4 + 8 + 8
)

// Group describes the entries of a bundle with the same kind and scope.
type Group struct {
	Kind, Scope string
	Entries     int
}

// Bundle is an open bundle. It is never changed.
type Bundle struct {
	data   []byte
	made   string
	groups []Group
	starts []int // by group: the index of its first entry
	index  []byte
	id     uint64
}

// Errors of data that is not a bundle.
var (
	errBundleMagic  = errors.New("it does not begin as a bundle does")
	errBundleLength = errors.New("its length differs from the length in its header")
	errBundleHash   = errors.New("its bytes do not match their checksum")
	errBundleOrder  = errors.New("its index is not in order")
)

// BundleVersionError says that a bundle has a format that this program does not read.
type BundleVersionError struct{ Version uint32 }

func (e *BundleVersionError) Error() string {
	return fmt.Sprintf("its format has version %d, this program reads version %d", e.Version, BundleVersion)
}

// ReadBundle opens a bundle and reads only the part before the bodies. It keeps data, which must
// not be changed any more. A wrong length is an error; ReadBundle allocates no more than data's
// real length allows.
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
		return nil, fmt.Errorf("%w: it has %d bytes of %d", errBundleLength, len(data), length)
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

// checkIndex checks that the index is in order, and that the bodies follow one another from at to
// the end. It counts the entries of each group.
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

// indexed is one entry of the index.
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

// Made is the note in which the bundle's writer names itself.
func (b *Bundle) Made() string { return b.made }

// ID identifies the bundle's content: bundles with the same ID are equal.
func (b *Bundle) ID() uint64 { return b.id }

// Len is the number of entries.
func (b *Bundle) Len() int { return len(b.index) / indexSize }

// Groups lists the bundle's groups by kind and scope. Callers must not change the list.
func (b *Bundle) Groups() []Group { return b.groups }

// Get finds an entry by its kind, its scope and the rest of its key. The value is a slice of the
// bundle. An error says that an entry is damaged, possibly the requested one.
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

// body returns the rest of an entry's key, and its value.
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

// Entry reads entry i, which is below Len. If it is damaged, only its kind and the scope in its key
// are right.
func (b *Bundle) Entry(i int) (Entry, error) {
	g := &b.groups[b.entry(i).group]
	key, value, err := b.body(i)
	return Entry{g.Kind, JoinKey(g.Scope, key), value}, err
}

// Keys lists the indices of the entries with a kind and scope, with the part of their keys behind
// the scope. It checks nothing: an entry may be damaged.
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

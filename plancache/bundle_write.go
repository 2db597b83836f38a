package plancache

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// WriteBundle writes entries as a bundle. made is a note for people that says who made it. The same
// entries give the same bytes in any order. Two entries with the same kind and key are an error.
func WriteBundle(w io.Writer, made string, entries []Entry) error {
	list := make([]bundled, 0, len(entries))
	for _, e := range entries {
		if !validKind(e.Kind) {
			return fmt.Errorf("plancache: kind %q is not 1 to 16 letters a to z", e.Kind)
		}
		scope, rest := SplitKey(e.Key)
		list = append(list, bundled{e.Kind, scope, rest, hashOf(rest), e.Value})
	}
	slices.SortFunc(list, func(a, b bundled) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.scope, b.scope), cmp.Compare(a.hash, b.hash), strings.Compare(a.rest, b.rest))
	})
	var groups, index bytes.Buffer
	var n uint32 // number of groups
	for i := range list {
		e := &list[i]
		if i > 0 && list[i-1].sameGroup(e) && list[i-1].rest == e.rest {
			return fmt.Errorf("plancache: two entries have the same kind and key, and so the name %s", nameOf(e.kind, JoinKey(e.scope, e.rest)))
		}
		if i == 0 || !list[i-1].sameGroup(e) {
			n++
			put32(&groups, uint32(len(e.kind)))
			put32(&groups, uint32(len(e.scope)))
			groups.WriteString(e.kind + e.scope)
		}
	}
	at := uint64(bundleHeader + len(made) + groups.Len() + len(list)*indexSize + hashSize)
	group := -1
	for i := range list {
		e := &list[i]
		if i == 0 || !list[i-1].sameGroup(e) {
			group++
		}
		put64(&index, e.hash)
		put64(&index, e.check())
		put32(&index, uint32(group))
		put32(&index, uint32(len(e.rest)))
		put64(&index, uint64(len(e.value)))
		put64(&index, at)
		at += uint64(len(e.rest) + len(e.value))
	}
	var head bytes.Buffer
	head.WriteString(bundleMagic)
	put32(&head, BundleVersion)
	put32(&head, n)
	put32(&head, uint32(len(list)))
	put32(&head, uint32(len(made)))
	put64(&head, at)
	head.WriteString(made)
	head.Write(groups.Bytes())
	head.Write(index.Bytes())
	put64(&head, xxhash.Sum64(head.Bytes()))
	if _, err := w.Write(head.Bytes()); err != nil {
		return err
	}
	for i := range list {
		if _, err := w.Write(slices.Concat([]byte(list[i].rest), list[i].value)); err != nil {
			return err
		}
	}
	return nil
}

// bundled is an entry in the form that a bundle has.
type bundled struct {
	kind, scope, rest string
	hash              uint64
	value             []byte
}

func (e *bundled) sameGroup(f *bundled) bool { return e.kind == f.kind && e.scope == f.scope }

func (e *bundled) check() uint64 {
	h := xxhash.New()
	h.WriteString(e.rest)
	h.Write(e.value)
	return h.Sum64()
}

func put32(b *bytes.Buffer, n uint32) { b.Write(binary.LittleEndian.AppendUint32(nil, n)) }
func put64(b *bytes.Buffer, n uint64) { b.Write(binary.LittleEndian.AppendUint64(nil, n)) }

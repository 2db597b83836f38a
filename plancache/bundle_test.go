package plancache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// someEntries returns entries of two kinds and several scopes, some with empty values.
func someEntries() []Entry {
	return []Entry{
		{"plan", "cpu best\nadd", []byte("the plan of add")},
		{"plan", "cpu best\nmul\nand more", []byte("another")},
		{"plan", "webgpu best\nadd", []byte("on a GPU")},
		{"tuning", "cpu best\nadd", []byte("1 2 3")},
		{"tuning", "no scope", nil},
		{"tuning", "", []byte("no key")},
		{"plan", "\nan empty line", []byte("x")},
	}
}

func bundleOf(t testing.TB, made string, entries []Entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := WriteBundle(&buf, made, entries); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// find looks an entry up by its whole key.
func find(b *Bundle, kind, key string) ([]byte, bool, error) {
	scope, rest := SplitKey(key)
	return b.Get(kind, scope, rest)
}

func TestBundle(t *testing.T) {
	entries := someEntries()
	data := bundleOf(t, "a test", entries)
	b, err := ReadBundle(data)
	if err != nil {
		t.Fatal(err)
	}
	if b.Made() != "a test" || b.Len() != len(entries) {
		t.Errorf("made by %q, %d entries", b.Made(), b.Len())
	}
	for _, e := range entries {
		if value, ok, err := find(b, e.Kind, e.Key); !ok || err != nil || !bytes.Equal(value, e.Value) {
			t.Errorf("%s %q: %q, %v, %v", e.Kind, e.Key, value, ok, err)
		}
	}
	for _, e := range []Entry{{"plan", "cpu best\nsub", nil}, {"plan", "other\nadd", nil}, {"object", "cpu best\nadd", nil}, {"plan", "add", nil}} {
		if value, ok, err := find(b, e.Kind, e.Key); ok || err != nil {
			t.Errorf("%s %q: %q, %v", e.Kind, e.Key, value, err)
		}
	}
	want := []Group{{"plan", "", 1}, {"plan", "cpu best", 2}, {"plan", "webgpu best", 1}, {"tuning", "", 2}, {"tuning", "cpu best", 1}}
	if !slices.Equal(b.Groups(), want) {
		t.Errorf("groups %+v, want %+v", b.Groups(), want)
	}
	var all []Entry
	for e, err := range b.All() {
		if err != nil {
			t.Error(err)
		}
		all = append(all, e)
	}
	slices.Reverse(all)
	if again := bundleOf(t, "a test", all); !bytes.Equal(again, data) {
		t.Error("the same entries in another order are another bundle")
	}
	other, err := ReadBundle(bundleOf(t, "a test", append(entries[1:], Entry{"plan", "cpu best\nadd", []byte("the plan of ADD")})))
	if err != nil || other.ID() == b.ID() {
		t.Errorf("another value, the same ID: %v", err)
	}
}

// A bundle may have no entries.
func TestEmptyBundle(t *testing.T) {
	b, err := ReadBundle(bundleOf(t, "", nil))
	if err != nil || b.Len() != 0 || len(b.Groups()) != 0 || b.Made() != "" {
		t.Fatalf("%+v, %v", b, err)
	}
	if _, ok, err := b.Get("plan", "", "k"); ok || err != nil {
		t.Errorf("an entry of nothing: %v", err)
	}
}

func TestWriteBundleErrors(t *testing.T) {
	for _, entries := range [][]Entry{
		{{"plan", "a\nb", nil}, {"tuning", "a\nb", nil}, {"plan", "a\nb", []byte("x")}},
		{{"../plan", "a", nil}},
	} {
		var buf bytes.Buffer
		if err := WriteBundle(&buf, "", entries); err == nil || buf.Len() > 0 {
			t.Errorf("%+v: error %v, %d bytes", entries, err, buf.Len())
		}
	}
	full := errors.New("full")
	for n := range 3 {
		if err := WriteBundle(&failing{n, full}, "", someEntries()); !errors.Is(err, full) {
			t.Errorf("the disk is full after %d writes: %v", n, err)
		}
	}
}

// failing is a writer that fails after so many writes.
type failing struct {
	left int
	err  error
}

func (f *failing) Write(b []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, f.err
	}
	return len(b), nil
}

// wantDamaged checks that bytes are no bundle, or one in which some entries are missing and all
// others are as they were. It returns the number of missing entries.
func wantDamaged(t *testing.T, what string, data []byte) (lost int) {
	t.Helper()
	b, err := ReadBundle(data)
	if err != nil {
		return len(someEntries())
	}
	for _, e := range someEntries() {
		value, ok, err := find(b, e.Kind, e.Key)
		switch {
		case ok && (err != nil || !bytes.Equal(value, e.Value)):
			t.Fatalf("%s: %s %q is %q, %v", what, e.Kind, e.Key, value, err)
		case !ok && err == nil:
			t.Fatalf("%s: %s %q is missing without a word", what, e.Kind, e.Key)
		case !ok:
			lost++
		}
	}
	bad := 0
	for _, err := range b.All() {
		if err != nil {
			bad++
		}
	}
	if bad != lost || lost == 0 {
		t.Fatalf("%s: %d entries are damaged, %d are missing", what, bad, lost)
	}
	return lost
}

// Every truncation and every changed byte is an error, or makes one entry invalid.
func TestBundleDamage(t *testing.T) {
	good := bundleOf(t, "a test", someEntries())
	for n := range good {
		if b, err := ReadBundle(good[:n:n]); err == nil {
			t.Fatalf("cut to %d: %+v", n, b)
		}
	}
	if _, err := ReadBundle(append(slices.Clone(good), 0)); err == nil {
		t.Error("a byte more")
	}
	single := 0
	for i := range good {
		for by := 1; by < 256; by++ {
			bad := slices.Clone(good)
			bad[i] ^= byte(by)
			if wantDamaged(t, fmt.Sprintf("byte %d changed by %x", i, by), bad) == 1 {
				single++
			}
		}
	}
	bodies := 0
	for _, e := range someEntries() {
		_, rest := SplitKey(e.Key)
		bodies += len(rest) + len(e.Value)
	}
	if single != 255*bodies {
		t.Errorf("%d changes cost one entry, of %d in bodies", single, 255*bodies)
	}
}

// rehash corrects a bundle's own hash, so that the checks after the hash must find what is wrong.
func rehash(data []byte, end int) []byte {
	binary.LittleEndian.PutUint64(data[end:], xxhash.Sum64(data[:end]))
	return data
}

// Malicious headers with a correct hash: no length is trusted, and a wrong index is an error.
func TestHostileBundle(t *testing.T) {
	good := bundleOf(t, "", someEntries()[:3])
	b, err := ReadBundle(good)
	if err != nil {
		t.Fatal(err)
	}
	end := len(good) - hashSize
	for i := range b.Len() {
		e := b.entry(i)
		end -= int(e.key) + int(e.value)
	}
	index := end - len(b.index)
	for _, c := range []struct {
		what string
		at   int
		size int
	}{
		{"groups", 12, 4}, {"entries", 16, 4}, {"note", 20, 4}, {"length", 24, 8},
		{"kind of a group", bundleHeader, 4}, {"scope of a group", bundleHeader + 4, 4},
		{"group of an entry", index + 16, 4}, {"key of an entry", index + 20, 4},
		{"value of an entry", index + 24, 8}, {"place of an entry", index + 32, 8},
	} {
		for _, n := range []uint64{0, 1, 0x7f, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 40, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
			bad := slices.Clone(good)
			var le [8]byte
			binary.LittleEndian.PutUint64(le[:], n)
			copy(bad[c.at:c.at+c.size], le[:])
			if bytes.Equal(bad, good) {
				continue
			}
			allocs := testing.AllocsPerRun(1, func() {
				if b, err := ReadBundle(rehash(bad, end)); err == nil {
					t.Errorf("%s of %x: %+v", c.what, n, b)
				}
			})
			if allocs > 20 {
				t.Errorf("%s of %x: %v allocations", c.what, n, allocs)
			}
		}
	}
	swapped := slices.Clone(good)
	copy(swapped[index:], good[index+indexSize:index+2*indexSize])
	copy(swapped[index+indexSize:], good[index:index+indexSize])
	if _, err := ReadBundle(rehash(swapped, end)); err == nil {
		t.Error("entries in another order")
	}
	other := slices.Clone(good)
	binary.LittleEndian.PutUint32(other[8:], BundleVersion+1)
	var version *BundleVersionError
	if _, err := ReadBundle(rehash(other, end)); !errors.As(err, &version) || version.Version != BundleVersion+1 {
		t.Errorf("another version: %v", err)
	}
	wrong := slices.Clone(good)
	wrong[index+2*indexSize] ^= 1 // the hash of a key, that of the only entry of its group
	if b, err = ReadBundle(rehash(wrong, end)); err != nil {
		t.Fatal(err)
	}
	bad := 0
	for _, err := range b.All() {
		if err != nil {
			bad++
		}
	}
	if bad != 1 {
		t.Errorf("%d entries with a wrong hash of their key", bad)
	}
}

// FuzzBundle checks that any bundle that opens can be read to its end and that its entries are
// found again. If none is damaged, they must give the same bundle.
func FuzzBundle(f *testing.F) {
	f.Add(bundleOf(f, "note", someEntries()[:2]))
	f.Add(bundleOf(f, "", nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		check := func(data []byte) {
			b, err := ReadBundle(data)
			if err != nil {
				return
			}
			var all []Entry
			sound := true
			for e, err := range b.All() {
				if err != nil {
					sound = false
					continue
				}
				all = append(all, e)
				if value, ok, err := find(b, e.Kind, e.Key); err == nil && ok && len(value) > len(data) {
					t.Errorf("%s %q: %d bytes of %d", e.Kind, e.Key, len(value), len(data))
				}
			}
			var buf bytes.Buffer
			if !sound || WriteBundle(&buf, b.Made(), all) != nil { // a key twice, or an invalid kind
				return
			}
			again, err := ReadBundle(buf.Bytes())
			if err != nil || again.Len() != len(all) {
				t.Fatalf("%d entries, %v", len(all), err)
			}
			for _, e := range all {
				if value, ok, err := find(again, e.Kind, e.Key); !ok || err != nil || !bytes.Equal(value, e.Value) {
					t.Errorf("%s %q: %q, %v, %v; was %q", e.Kind, e.Key, value, ok, err, e.Value)
				}
			}
		}
		check(data)
		// A fuzzer cannot guess the hash, so the test corrects it, and the length.
		if len(data) < bundleHeader+hashSize {
			return
		}
		fixed := slices.Clone(data)
		binary.LittleEndian.PutUint64(fixed[24:], uint64(len(fixed)))
		for end := len(fixed) - hashSize; end >= bundleHeader && end > len(fixed)-200; end-- {
			check(rehash(slices.Clone(fixed), end))
		}
	})
}

// BenchmarkReadBundle opens a bundle of 1,000 plans of 8 KiB.
func BenchmarkReadBundle(b *testing.B) {
	data := bundleOf(b, "", thousand())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadBundle(data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBundleGet finds one of 1,000.
func BenchmarkBundleGet(b *testing.B) {
	bundle, err := ReadBundle(bundleOf(b, "", thousand()))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, ok, err := bundle.Get("plan", "scope", "500"); !ok || err != nil {
			b.Fatal(err)
		}
	}
}

func thousand() []Entry {
	var es []Entry
	for i := range 1000 {
		es = append(es, Entry{"plan", fmt.Sprint("scope\n", i), bytes.Repeat([]byte{byte(i)}, 8<<10)})
	}
	return es
}

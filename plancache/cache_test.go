package plancache

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/fault"
)

func openTest(t *testing.T, dir string, o Options) *Cache {
	t.Helper()
	c, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func put(t *testing.T, c *Cache, kind, key, value string) {
	t.Helper()
	if err := c.Put(kind, key, []byte(value)); err != nil {
		t.Fatal(err)
	}
}

func wantEntry(t *testing.T, c *Cache, kind, key, value string) {
	t.Helper()
	if got, ok := c.Get(kind, key); !ok || string(got) != value {
		t.Fatalf("%s %q: got %q, %v, want %q", kind, key, got, ok, value)
	}
}

func TestGetPut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	var seen []Outcome
	c := openTest(t, dir, Options{OnEvent: func(e Event) { seen = append(seen, e.Outcome) }})
	if _, ok := c.Get("plan", "k"); ok {
		t.Fatal("an entry in an empty cache")
	}
	put(t, c, "plan", "k", "one")
	put(t, c, "object", "k", "")
	put(t, c, "plan", "k", "two")
	wantEntry(t, c, "plan", "k", "two")
	again := openTest(t, dir, Options{})
	wantEntry(t, again, "plan", "k", "two")
	wantEntry(t, again, "object", "k", "")
	if want := []Outcome{Miss, Written, Written, Written, Hit}; !slices.Equal(seen, want) {
		t.Errorf("events %v, want %v", seen, want)
	}
	if s := c.Stats(); s.Hits != 1 || s.Misses != 1 || s.Written != 3 || s.Damaged+s.Refused+s.Evicted+s.Failed != 0 {
		t.Errorf("%+v", s)
	}
	for _, kind := range []string{"", "Plan", "a-b", "../plan", "tmp", strings.Repeat("a", 17)} {
		if c.Put(kind, "k", nil) == nil {
			t.Errorf("kind %q was taken", kind)
		}
	}
	if err := openTest(t, dir, Options{Limit: 100}).Put("plan", "k", make([]byte, 101)); err == nil {
		t.Error("an entry larger than the cache was taken")
	}
}

// A nil cache is one that is off.
func TestNil(t *testing.T) {
	var c *Cache
	if err := c.Put("plan", "k", nil); err != nil {
		t.Error(err)
	}
	if _, ok := c.Get("plan", "k"); ok || c.Stats() != (Stats{}) || c.Dir() != Off || c.Close() != nil {
		t.Error("a nil cache holds something")
	}
	c.Refuse("plan", nil)
}

// Every truncation, every added byte, every flipped bit and every other kind of file in its place
// makes an entry a miss that is counted.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	c := openTest(t, dir, Options{})
	const key, value = "the key", "the value of the entry"
	put(t, c, "plan", key, value)
	path := filepath.Join(dir, folder, nameOf("plan", key))
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	missed := int64(0)
	try := func(what string, file []byte) {
		t.Helper()
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		if v, ok := c.Get("plan", key); ok {
			t.Fatalf("%s: found %q", what, v)
		}
		if missed++; c.Stats().Damaged != missed || c.Stats().Misses != missed {
			t.Fatalf("%s: %+v", what, c.Stats())
		}
	}
	for n := range good {
		try(fmt.Sprint("cut to ", n), good[:n])
	}
	try("longer", append(bytes.Clone(good), 0))
	for i := range good {
		for _, by := range []byte{1, 0x80, 0xff} {
			bad := bytes.Clone(good)
			bad[i] ^= by
			try(fmt.Sprintf("byte %d changed by %x", i, by), bad)
		}
	}
	try("of another key", encode("plan", "another key", []byte(value)))
	try("of another kind", encode("object", key, []byte(value)))
	huge := encode("plan", key, []byte(value))
	for i := range 8 {
		huge[len(magic)+12+i] = 0xff // the length of the value
	}
	try("with a length that overflows", huge)

	put(t, c, "plan", key, value)
	wantEntry(t, c, "plan", key, value)
	os.Remove(path)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Get("plan", key); ok || c.Stats().Damaged != missed+1 {
		t.Errorf("a directory: %v, %+v", ok, c.Stats())
	}
}

// Every step of every operation may fail, as on a full disk. The entry is then unchanged or missing,
// no file is left behind, and the failure is counted.
func TestFaults(t *testing.T) {
	defer fault.Reset()
	dir := t.TempDir()
	fault.Set(fault.File, 1)
	if _, err := Open(dir, Options{}); err == nil {
		t.Error("opened in spite of a fault")
	}
	fault.Reset()
	steps := 0
	for ; ; steps++ {
		c := openTest(t, dir, Options{})
		put(t, c, "plan", "k", "old")
		c.known = true // counting the files is a step of its own
		fault.SetAfter(fault.File, steps, 1)
		err := c.Put("plan", "k", []byte("new"))
		fault.Reset()
		if err == nil {
			break
		}
		if s := c.Stats(); s.Failed != 1 || s.Written != 1 {
			t.Errorf("step %d: %+v", steps, s)
		}
		wantEntry(t, c, "plan", "k", "old")
		if files, _ := os.ReadDir(filepath.Join(dir, folder)); len(files) != 1 {
			t.Errorf("step %d left %v", steps, files)
		}
	}
	if steps != 5 { // create, write, flush, close, rename
		t.Errorf("writing has %d steps that can fail", steps)
	}
	c := openTest(t, dir, Options{})
	fault.Set(fault.File, 1)
	if _, ok := c.Get("plan", "k"); ok || c.Stats().Failed != 1 || c.Stats().Misses != 1 {
		t.Errorf("reading: %v, %+v", ok, c.Stats())
	}
	wantEntry(t, c, "plan", "k", "new")
	fault.Set(fault.File, -1)
	for range giveUp {
		c.Put("plan", "k", nil)
	}
	fault.Reset()
	if err := c.Put("plan", "k", nil); !errors.Is(err, errDisabled) || !c.Stats().WritesDisabled {
		t.Errorf("after %d failures: %v, %+v", giveUp, err, c.Stats())
	}
	wantEntry(t, c, "plan", "k", "new")
}

// A key is its scope, the first of several lines, and the rest.
func TestSplitKey(t *testing.T) {
	for key, want := range map[string][2]string{
		"": {"", ""}, "a": {"", "a"}, "a\n": {"a", ""}, "a b\nc\nd": {"a b", "c\nd"}, "\na": {"", "\na"},
	} {
		scope, rest := SplitKey(key)
		if scope != want[0] || rest != want[1] || JoinKey(scope, rest) != key {
			t.Errorf("%q: %q and %q, want %q", key, scope, rest, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encode("plan", "key", []byte("value")))
	f.Add(encode("object", "", nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := decode(b); err == nil && !bytes.Equal(encode(e.Kind, e.Key, e.Value), b) {
			t.Errorf("%+v is what %x holds", e, b)
		}
	})
}

func BenchmarkGet(b *testing.B) {
	c, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if err := c.Put("plan", "k", make([]byte, 16<<10)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c.Get("plan", "k")
	}
}

// BenchmarkOpen opens a cache of 1,000 plans and closes it.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	c, err := Open(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 1000 {
		if err := c.Put("plan", fmt.Sprint(i), make([]byte, 8<<10)); err != nil {
			b.Fatal(err)
		}
	}
	c.Close()
	b.ReportAllocs()
	for b.Loop() {
		c, err := Open(dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}

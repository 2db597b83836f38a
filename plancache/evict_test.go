package plancache

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// age sets an entry's last use to that long ago.
func age(t *testing.T, c *Cache, kind, key string, by time.Duration) {
	t.Helper()
	then := time.Now().Add(-by)
	if err := c.root.Chtimes(nameOf(kind, key), then, then); err != nil {
		t.Fatal(err)
	}
}

// The entries unused for longest are evicted, and Get counts as a use.
func TestEviction(t *testing.T) {
	c := openTest(t, t.TempDir(), Options{Limit: 10_000})
	value := strings.Repeat("v", 1000)
	for i := range 8 {
		put(t, c, "plan", fmt.Sprint(i), value)
		age(t, c, "plan", fmt.Sprint(i), time.Duration(20-i)*time.Hour)
	}
	wantEntry(t, c, "plan", "0", value) // the oldest, but just used
	stale := filepath.Join(c.dir, folder, "tmp-1-1-1")
	if err := os.WriteFile(stale, make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	os.Chtimes(stale, old, old)
	for i := 8; i < 11; i++ {
		put(t, c, "plan", fmt.Sprint(i), value)
	}
	files, err := c.List()
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	have := map[string]bool{}
	for _, f := range files {
		total += f.Bytes
		e, err := c.Read(f.Name)
		if err != nil {
			t.Error(err)
		}
		have[e.Key] = true
	}
	if total > 10_000 || c.Stats().Evicted == 0 || int(c.Stats().Evicted) != 11-len(files) {
		t.Errorf("%d bytes in %d files, %+v", total, len(files), c.Stats())
	}
	for _, key := range []string{"0", "8", "9", "10"} {
		if !have[key] {
			t.Errorf("entry %s is gone", key)
		}
	}
	if have["1"] {
		t.Error("entry 1, used longest ago, is still there")
	}
	if _, err := os.Stat(stale); err == nil {
		t.Error("a temporary file of long ago is still there")
	}
}

// Several caches on one directory evict at once while others read. All values read are whole, and
// the directory stays within the limit.
func TestEvictionTogether(t *testing.T) {
	dir := t.TempDir()
	const limit = 200_000
	stop := time.Now().Add(300 * time.Millisecond)
	var all sync.WaitGroup
	for w := range 4 {
		c := openTest(t, dir, Options{Limit: limit})
		all.Go(func() {
			for i := 0; time.Now().Before(stop); i++ {
				key := fmt.Sprint((i*7 + w*31) % 100)
				if v, ok := c.Get("plan", key); ok && string(v) != strings.Repeat(key, 2000) {
					t.Errorf("entry %s holds %d bytes of something else", key, len(v))
				}
				if err := c.Put("plan", key, []byte(strings.Repeat(key, 2000))); err != nil {
					t.Error(err)
				}
			}
			if s := c.Stats(); s.Damaged+s.Failed+s.Refused > 0 || s.Written == 0 {
				t.Errorf("%+v", s)
			}
		})
	}
	all.Wait()
	c := openTest(t, dir, Options{Limit: limit})
	put(t, c, "plan", "last", "")
	files, err := c.List()
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, f := range files {
		total += f.Bytes
	}
	if total > limit {
		t.Errorf("%d bytes, the limit is %d", total, limit)
	}
}

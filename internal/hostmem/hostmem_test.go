package hostmem

import (
	"os"
	"path/filepath"
	"testing"
)

// TestGroups: the smallest limit of all control groups around the process counts, in both versions.
func TestGroups(t *testing.T) {
	for _, c := range []struct {
		name  string
		list  string
		files map[string]string
		want  int64
	}{
		{"no groups", "", nil, none},
		{"a container's own", "0::/\n", map[string]string{"memory.max": "1000\n"}, 1000},
		{"none set", "0::/\n", map[string]string{"memory.max": "max\n"}, none},
		{"its own", "0::/a/b\n", map[string]string{"a/b/memory.max": "500\n", "a/memory.max": "max\n"}, 500},
		{"one around it", "0::/a/b\n", map[string]string{"a/b/memory.max": "500\n", "a/memory.max": "300\n"}, 300},
		{"version 1", "3:cpu,cpuacct:/x\n4:memory:/a\n", map[string]string{"memory/a/memory.limit_in_bytes": "700\n", "memory/memory.limit_in_bytes": "9223372036854771712\n"}, 700},
		{"outside of its root", "0::/../x\n", map[string]string{"memory.max": "800\n"}, 800},
		{"no numbers", "0::/a\nrubbish\n", map[string]string{"a/memory.max": "many\n"}, none},
	} {
		root := t.TempDir()
		for name, text := range c.files {
			file := filepath.Join(root, name)
			os.MkdirAll(filepath.Dir(file), 0o755)
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		list := filepath.Join(root, "list")
		if c.list != "" {
			os.WriteFile(list, []byte(c.list), 0o644)
		}
		if got := groups(list, root); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if n := Limit(1 << 40); n < 1<<20 || n > 1<<46 {
		t.Errorf("this machine has %d bytes", n)
	}
}

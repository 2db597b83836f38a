package hostmem

import (
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// Limit is the memory of the machine or of the container, whichever is smaller; unknown if neither
// is known.
func Limit(unknown int64) int64 {
	limit := groups("/proc/self/cgroup", "/sys/fs/cgroup")
	if n := installed(); n > 0 {
		limit = min(limit, n)
	}
	if limit == none {
		return unknown
	}
	return limit
}

const none = math.MaxInt64

// groups is the smallest limit of the process's control groups. A group's path is relative to the
// process's own root, and surrounding groups limit it, too: in version 2 in one tree, in version 1
// in the tree for memory.
func groups(list, root string) int64 {
	limit := min(number(root+"/memory.max"), number(root+"/memory/memory.limit_in_bytes"))
	text, err := os.ReadFile(list)
	if err != nil {
		return limit
	}
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		dir, file := root, "memory.max"
		switch {
		case f[1] == "memory":
			dir, file = root+"/memory", "memory.limit_in_bytes"
		case f[1] != "":
			continue
		}
		for group := path.Clean("/" + f[2]); group != "/"; group = path.Dir(group) {
			limit = min(limit, number(dir+group+"/"+file))
		}
	}
	return limit
}

// number is the number in a file; none if there is none, or "max".
func number(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return none
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n <= 0 {
		return none
	}
	return n
}

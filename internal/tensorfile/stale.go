package tensorfile

import (
	"os"
	"path/filepath"
	"regexp"
)

// A process that is killed while it writes leaves its temporary file, which is as large as the file
// itself. The next Save to the same path removes it. A writer holds a lock on its temporary file,
// which ends with the process, so a file that can be locked has no writer any more.

// removeStale removes the temporary files of path that have no writer.
func removeStale(path string) {
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1) // those that were read are enough
	ours := regexp.MustCompile(`^\.` + regexp.QuoteMeta(base) + `\.[0-9a-f]{8}\.tmp$`)
	for _, name := range names {
		if ours.MatchString(name) {
			removeUnlocked(filepath.Join(dir, name))
		}
	}
}

// isAt reports whether a file still has its name.
func isAt(f *os.File, name string) bool {
	own, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(name)
	return err == nil && os.SameFile(own, there)
}

//go:build unix

package plancache

import (
	"fmt"
	"os"
	"syscall"
)

// checkOwner refuses a directory that any other user can write to. The administrator always can.
func checkOwner(path string, is os.FileInfo) error {
	st, ok := is.Sys().(*syscall.Stat_t)
	if !ok {
		return &RefusedError{path, "has no owner that the system tells", "use another file system"}
	}
	if uid := os.Geteuid(); int(st.Uid) != uid {
		return &RefusedError{path, fmt.Sprintf("belongs to user %d, but this program runs as user %d", st.Uid, uid),
			"remove it or make this user its owner"}
	}
	if is.Mode().Perm()&0o022 != 0 {
		return &RefusedError{path, fmt.Sprintf("can be written by others (mode %04o)", is.Mode().Perm()),
			"check its files, then run chmod go-w on it"}
	}
	return nil
}

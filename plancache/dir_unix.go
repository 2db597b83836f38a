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
		return &RefusedError{path, "has an owner that cannot be told", "use another file system"}
	}
	if uid := os.Geteuid(); int(st.Uid) != uid {
		return &RefusedError{path, fmt.Sprintf("belongs to user %d, not to user %d who runs this", st.Uid, uid),
			"remove it or have it given to this user"}
	}
	if is.Mode().Perm()&0o022 != 0 {
		return &RefusedError{path, fmt.Sprintf("can be written by others (mode %04o)", is.Mode().Perm()),
			"run chmod go-w on it after a look at what it holds"}
	}
	return nil
}

//go:build !unix || solaris || aix

package tensorfile

import "os"

// movesOpen is false where a file cannot be renamed while it is open.
const movesOpen = false

func hold(*os.File) bool { return true }

func removeUnlocked(string) {} // stale files stay

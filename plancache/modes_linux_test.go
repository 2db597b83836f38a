package plancache

import (
	"os"
	goruntime "runtime"
	"syscall"
	"testing"
	"unsafe"
)

// obeyModes makes file modes apply to the goroutine of this test. They do not apply to the
// administrator, as whom CI runs: so the test's thread gives up the capability to override them, and
// ends with the test.
func obeyModes(t *testing.T) {
	if os.Geteuid() != 0 {
		return
	}
	goruntime.LockOSThread() // and never unlocked
	const (
		version3    = 0x20080522
		dacOverride = 1 << 1
	)
	header := struct {
		version uint32
		pid     int32
	}{version: version3}
	var sets [2]struct{ effective, permitted, inheritable uint32 }
	for _, call := range []uintptr{syscall.SYS_CAPGET, syscall.SYS_CAPSET} {
		if _, _, err := syscall.RawSyscall(call, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&sets)), 0); err != 0 {
			t.Fatal("capabilities: ", err)
		}
		sets[0].effective &^= dacOverride
	}
}

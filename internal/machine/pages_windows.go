package machine

import (
	"syscall"
	"unsafe"
)

// pages says that this system has executable pages. A fault in them ends the process: Go's runtime
// handles only faults in the program's own text.
const pages = true

const (
	allocateOp = "VirtualAlloc"
	protectOp  = "VirtualProtect"
)

const (
	memCommit       = 0x1000
	memReserve      = 0x2000
	memRelease      = 0x8000
	pageReadWrite   = 0x04
	pageExecuteRead = 0x20
)

var (
	kernel32       = syscall.NewLazyDLL("kernel32.dll")
	virtualAlloc   = kernel32.NewProc("VirtualAlloc")
	virtualProtect = kernel32.NewProc("VirtualProtect")
	virtualFree    = kernel32.NewProc("VirtualFree")
)

func systemPage() int { return syscall.Getpagesize() }

func allocate(n int) ([]byte, error) {
	addr, _, err := virtualAlloc.Call(0, uintptr(n), memCommit|memReserve, pageReadWrite)
	if addr == 0 {
		return nil, err
	}
	// The memory is not Go's, and the collector does not know its address.
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), n), nil
}

func protect(mem []byte) error {
	var old uint32
	ok, _, err := virtualProtect.Call(address(mem), uintptr(len(mem)), pageExecuteRead, uintptr(unsafe.Pointer(&old)))
	if ok == 0 {
		return err
	}
	return nil
}

func release(mem []byte) error {
	ok, _, err := virtualFree.Call(address(mem), 0, memRelease)
	if ok == 0 {
		return err
	}
	return nil
}

func address(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }

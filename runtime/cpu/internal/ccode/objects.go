//go:build cgo && unix

package ccode

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/cgo"
)

// If the device has a cache, compiled objects outlive the process. The key of an object contains
// everything that decides a compiler's output: the inputs of the C text (which include the ABI),
// the flags, the identity of the compiler, and the processor, because -march=native depends on it.
// The cache returns only bytes with the right hash, from a directory that only this user can
// write. They are copied to memory, or into a private directory, before they are opened. Finally,
// the object's own probe must succeed.

// Kinds of cache entries.
const (
	kindObject   = "object"
	kindCompiler = "compiler" // which of machineFlags a compiler accepts
)

// identity identifies a compiler without running it. A wrapper, such as ccache, is identified by
// its own file and arguments.
func identity(cc []string) (string, error) {
	path, err := exec.LookPath(cc[0])
	if err != nil {
		return "", err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	is, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s\n%s\n%d bytes\n%d\n%s\n%q\n%q", path, real, is.Size(), is.ModTime().UnixNano(),
		Processor(), cc[1:], baseFlags), nil
}

// objectKey returns the key of the toolchain's output for a C text of this form.
func (t *toolchain) objectKey(form string) string {
	return fmt.Sprintf("%s\n%q\n%s", t.id, t.flags, form)
}

// knownFlags returns the flags that an earlier process found this compiler to accept; nil if
// unknown.
func (t *toolchain) knownFlags() []string {
	if t.cache == nil {
		return nil
	}
	value, ok := t.cache.Get(kindCompiler, t.id)
	if !ok {
		return nil
	}
	number, _, _ := strings.Cut(string(value), " ") // older entries continue with the compiler's version
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= len(machineFlags) {
		t.cache.Refuse(kindCompiler, fmt.Errorf("%q is not the number of a list of flags", value))
		return nil
	}
	return withMachine(n)
}

// recall loads an object that an earlier process compiled. It returns false if there is no usable
// one.
func (c *Compiler) recall(made *built, tools *toolchain, units []cgo.Unit) bool {
	if tools.cache == nil {
		return false
	}
	object, ok := tools.cache.Get(kindObject, made.key)
	if !ok {
		return false
	}
	made.object = object
	if err := c.open(made, tools, units); err != nil {
		tools.cache.Refuse(kindObject, fmt.Errorf("a compiled object of %d bytes cannot be used: %w", len(object), err))
		return false
	}
	made.recalled = true
	return true
}

// openFile loads an object from the private directory. The file is removed afterwards: a loaded
// object needs no name.
func (t *toolchain) openFile(object []byte, names ...string) (handle unsafe.Pointer, funcs []unsafe.Pointer, err error) {
	dir, err := t.work()
	if err != nil {
		return nil, nil, err
	}
	if err := dir.checkParents(); err != nil {
		return nil, nil, err
	}
	t.count++
	name := fmt.Sprintf("k%d.so", t.count)
	defer dir.root.Remove(name)
	path, err := dir.put(name, object)
	if err != nil {
		return nil, nil, err
	}
	return load(path, names...)
}

// open loads an object from a file in memory that has no name, which no other process can reach.
// If the system has no such files, or executes nothing from them, open loads the object from the
// private directory. The latter case is a fallback.
func (c *Compiler) open(made *built, tools *toolchain, units []cgo.Unit) error {
	names := make([]string, len(units))
	for i := range units {
		names[i] = units[i].Name
	}
	object := made.object
	if err := checkObject(object); err != nil {
		return err
	}
	handle, funcs, err := loadBytes(object, names...)
	if isOpenError(err) || errors.Is(err, errNoMemoryFiles) {
		var again error
		if handle, funcs, again = tools.openFile(object, names...); again != nil {
			return errors.Join(err, again)
		}
		made.fallback = isOpenError(err)
	} else if err != nil {
		return err
	}
	made.phases = c.loaded.add(handle, units, funcs)
	return nil
}

func isOpenError(err error) bool {
	var noexec *openError
	return errors.As(err, &noexec)
}

// loadBytes is load for an object in memory: it is copied to a file without a name in any
// directory, to which no other process can write.
func loadBytes(object []byte, names ...string) (unsafe.Pointer, []unsafe.Pointer, error) {
	memory, err := anonymous("millrace-kernel")
	if err != nil {
		return nil, nil, err
	}
	defer memory.Close()
	if _, err := memory.Write(object); err != nil {
		return nil, nil, err
	}
	return load(pathOf(memory), names...)
}

// memoryPaths counts the paths that pathOf returned.
var memoryPaths atomic.Uint64

// pathOf returns a path of an open file that no other file had before. The dynamic linker takes
// files of the same path for the same file, and descriptor numbers are reused. So the path
// contains detours, one for each bit of its number.
func pathOf(f *os.File) string {
	b := []byte("/proc/self/")
	for n := memoryPaths.Add(1); n > 0; n /= 2 {
		b = append(b, [...]string{"./", "fd/../"}[n%2]...)
	}
	return string(strconv.AppendUint(append(b, "fd/"...), uint64(f.Fd()), 10))
}

//go:build cgo && unix

package cpu

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

// Compiled objects outlive the process where the device has a cache. What is
// kept is under everything that decides what a compiler makes: what the C text
// depends on (which has the ABI in it), the flags, which compiler it is, and the processor,
// because -march=native means another one elsewhere. The cache gives only bytes
// whose hash is right, from a directory that is this user's alone; they are
// copied to memory, or into a private directory, before they are opened, and the
// probe of the object has the last word.

// Kinds of cache entries.
const (
	kindObject   = "object"
	kindCompiler = "compiler" // which of machineFlags a compiler takes
)

// identity tells compilers apart without running them. A wrapper, such as
// ccache, is as good as the name it goes by.
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
		processor(), cc[1:], baseFlags), nil
}

// objectKey is the key of what the toolchain makes of a C text of this form.
func (t *toolchain) objectKey(form string) string {
	return fmt.Sprintf("%s\n%q\n%s", t.id, t.flags, form)
}

// knownFlags are the flags that this compiler was found to take by an earlier
// process; nil if nobody has tried.
func (t *toolchain) knownFlags() []string {
	if t.cache == nil {
		return nil
	}
	value, ok := t.cache.Get(kindCompiler, t.id)
	if !ok {
		return nil
	}
	number, _, _ := strings.Cut(string(value), " ") // older ones go on with the compiler's version
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= len(machineFlags) {
		t.cache.Refuse(kindCompiler, fmt.Errorf("%q names no flags", value))
		return nil
	}
	return withMachine(n)
}

// recall finds an object that an earlier process compiled and loads it; nil if
// there is none that is any good.
func (c *compiler) recall(tools *toolchain, key string, plan *phasePlan, units []cgo.Unit) *compiled {
	if tools.cache == nil {
		return nil
	}
	object, ok := tools.cache.Get(kindObject, key)
	if !ok {
		return nil
	}
	code, err := c.open(tools, object, plan, units)
	if err != nil {
		tools.cache.Refuse(kindObject, fmt.Errorf("a compiled object of %d bytes: %w", len(object), err))
		return nil
	}
	return code
}

// openFile loads an object from the private directory, where it stays for a moment:
// what is loaded needs no name.
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

// open loads an object from memory: from a file without a name, which nobody else
// can reach. Systems that have no such files, or execute nothing from them, load
// it from the private directory; where they have such files, that is counted.
func (c *compiler) open(tools *toolchain, object []byte, plan *phasePlan, units []cgo.Unit) (*compiled, error) {
	names := make([]string, len(units))
	for i := range units {
		names[i] = units[i].Name
	}
	if err := checkObject(object); err != nil {
		return nil, err
	}
	handle, funcs, err := loadBytes(object, names...)
	if isOpenError(err) || errors.Is(err, errNoMemoryFiles) {
		var again error
		if handle, funcs, again = tools.openFile(object, names...); again != nil {
			return nil, errors.Join(err, again)
		}
		if isOpenError(err) {
			c.dev.count.fallbacks.Add(1)
		}
	} else if err != nil {
		return nil, err
	}
	code := compiledC(plan, units, funcs, c.isa)
	c.loaded.add(handle, code)
	return code, nil
}

func isOpenError(err error) bool {
	var noexec *openError
	return errors.As(err, &noexec)
}

// loadBytes is load for an object that is copied to a file which has no name in
// any directory, so that nobody else can write to it.
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

// memoryPaths counts the paths that pathOf gave.
var memoryPaths atomic.Uint64

// pathOf is a path of an open file that no other file had before: the dynamic
// linker takes files of one path for one file, and numbers of descriptors come
// back. So the path takes turns, one for each bit of its number.
func pathOf(f *os.File) string {
	b := []byte("/proc/self/")
	for n := memoryPaths.Add(1); n > 0; n /= 2 {
		b = append(b, [...]string{"./", "fd/../"}[n%2]...)
	}
	return string(strconv.AppendUint(append(b, "fd/"...), uint64(f.Fd()), 10))
}

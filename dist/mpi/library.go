//go:build linux && (amd64 || arm64)

package mpi

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/millrace-go/millrace/dist/internal/launcher"
)

// library is a loaded MPI library.
type library struct {
	*abi
	path    string
	version string
	so      uintptr // of dlopen

	world, byte, errorsReturn uintptr

	initThread, initialized, finalize, abort, errorString    uintptr
	commDup, commFree, commRank, commSize, commSetErrhandler uintptr
	isend, irecv, iprobe, test                               uintptr
	iallgatherv, ibcast                                      uintptr
}

// functions are the names of the functions that are called, and the fields for their addresses.
func (l *library) functions() map[string]*uintptr {
	return map[string]*uintptr{
		"MPI_Init_thread": &l.initThread, "MPI_Initialized": &l.initialized, "MPI_Finalize": &l.finalize, "MPI_Abort": &l.abort,
		"MPI_Error_string": &l.errorString, "MPI_Comm_dup": &l.commDup, "MPI_Comm_free": &l.commFree, "MPI_Comm_rank": &l.commRank,
		"MPI_Comm_size": &l.commSize, "MPI_Comm_set_errhandler": &l.commSetErrhandler, "MPI_Isend": &l.isend, "MPI_Irecv": &l.irecv,
		"MPI_Iprobe": &l.iprobe, "MPI_Test": &l.test, "MPI_Iallgatherv": &l.iallgatherv, "MPI_Ibcast": &l.ibcast,
	}
}

// call calls a function of the library. A pointer among the operands must be converted in the list
// of operands itself, so that its memory stays where it is during the call.
//
//go:uintptrescapes
func (l *library) call(name string, function uintptr, operands ...uintptr) error {
	r, _, _ := purego.SyscallN(function, operands...)
	if code := int32(r); code != 0 {
		return fmt.Errorf("%s of %s: %s", name, l.version, l.text(code))
	}
	return nil
}

// text is what the library says about an error.
func (l *library) text(code int32) string {
	text, n := make([]byte, 8192), int32(0)
	r, _, _ := purego.SyscallN(l.errorString, uintptr(code), uintptr(unsafe.Pointer(&text[0])), uintptr(unsafe.Pointer(&n)))
	if int32(r) != 0 || n <= 0 || int(n) > len(text) {
		return fmt.Sprintf("error %d", code)
	}
	return strings.TrimRight(string(text[:n]), "\x00\n ")
}

// choice is a library to try: its name, and the families that it may be of.
type choice struct {
	name string
	of   []*abi
}

// choices lists the libraries to try for a launcher, by the value of MILLRACE_MPI.
func choices(l launcher.Launch, variable string) (list []choice, install []string) {
	add := func(a *abi) {
		for _, name := range a.libraries {
			list = append(list, choice{name, []*abi{a}})
		}
		install = append(install, a.install)
	}
	for _, a := range abis {
		if variable == a.name {
			add(a)
			return list, install
		}
	}
	if variable != "" {
		return []choice{{variable, abis}}, nil
	}
	for _, a := range abis {
		if a.talksTo(l.Family) {
			add(a)
		}
	}
	return list, install
}

// find loads the first library that there is.
func find(l launcher.Launch) (*library, error) {
	variable := os.Getenv("MILLRACE_MPI")
	list, install := choices(l, variable)
	var failed []string
	for _, c := range list {
		lib, err := load(c)
		if err == nil {
			return lib, nil
		}
		failed = append(failed, err.Error())
	}
	why := "no MPI library can be loaded"
	if l.By != "" {
		why = l.By + " started this process, but no MPI library that can talk to it can be loaded"
	}
	if variable != "" {
		why = fmt.Sprintf("MILLRACE_MPI is %q, but that MPI library cannot be loaded", variable)
	}
	how := "set MILLRACE_MPI to a library's path"
	if len(install) > 0 {
		how = "install " + strings.Join(install, " or ") + ", or " + how
	}
	return nil, fmt.Errorf("%s (%s); %s", why, strings.Join(failed, "; "), how)
}

// load loads a library, finds out its family, and finds its functions. The signal handlers that it
// sets are the caller's business.
func load(c choice) (*library, error) {
	// The plugins of Open MPI look for its symbols among those of the whole process.
	so, err := purego.Dlopen(c.name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, err
	}
	l := &library{path: c.name, so: so}
	if l.abi, l.version, err = familyOf(so); err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	for _, a := range c.of {
		if a == l.abi {
			return l, l.fill(so)
		}
	}
	return nil, fmt.Errorf("%s is %s, of another family", c.name, l.version)
}

// familyOf asks a library which interface it has. Both functions may be called before MPI_Init.
func familyOf(so uintptr) (*abi, string, error) {
	f, err := purego.Dlsym(so, "MPI_Get_library_version")
	if err != nil {
		return nil, "", errors.New("the library has no MPI_Get_library_version, so it does not implement MPI")
	}
	text, n := make([]byte, 8192), int32(0)
	purego.SyscallN(f, uintptr(unsafe.Pointer(&text[0])), uintptr(unsafe.Pointer(&n)))
	text, _, _ = bytes.Cut(text, []byte{0})
	line, _, _ := strings.Cut(string(text), "\n")
	line, _, _ = strings.Cut(line, ",") // Open MPI goes on with who built it
	version := strings.Join(strings.Fields(line), " ")
	if _, err := purego.Dlsym(so, openMPI.world.symbol); err == nil {
		return &openMPI, version, nil
	}
	// A library of MPI 5 with its own older interface has the function too, and says -1.
	if f, err := purego.Dlsym(so, "MPI_Abi_get_version"); err == nil {
		major, minor := int32(-1), int32(-1)
		purego.SyscallN(f, uintptr(unsafe.Pointer(&major)), uintptr(unsafe.Pointer(&minor)))
		if major >= 1 {
			return &forum, version, nil
		}
	}
	for _, word := range []string{"MPICH", "MVAPICH", "Intel(R) MPI"} {
		if strings.Contains(string(text), word) {
			return &mpich, version, nil
		}
	}
	return nil, version, fmt.Errorf("%q is neither Open MPI, MPICH, MVAPICH nor Intel MPI, and has no interface of MPI 5", version)
}

// fill finds the functions and handles.
func (l *library) fill(so uintptr) error {
	for name, to := range l.functions() {
		at, err := purego.Dlsym(so, name)
		if err != nil {
			return fmt.Errorf("%s (%s) has no function %s, which MPI 3 has", l.path, l.version, name)
		}
		*to = at
	}
	for h, to := range map[handle]*uintptr{l.abi.world: &l.world, l.abi.byte: &l.byte, l.abi.errorsReturn: &l.errorsReturn} {
		*to = h.number
		if h.symbol != "" {
			at, err := purego.Dlsym(so, h.symbol)
			if err != nil {
				return fmt.Errorf("%s (%s) has no %s", l.path, l.version, h.symbol)
			}
			*to = at
		}
	}
	return nil
}

//go:build linux && (amd64 || arm64)

package mpi

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/dist/internal/launcher"
)

var headers = flag.String("headers", "", "folders with mpi.h, besides those of Debian's packages")

// definition is how a header defines a constant: #define NAME value, or NAME = value in an enum.
var definition = regexp.MustCompile(`(?m)^\s*(?:#define\s+)?(MPI_\w+)\s*(?:=|\s)\s*(\S.*?),?\s*(?:/\*.*)?$`)

// constants finds the first definition of each name in a header.
func constants(text string) map[string]string {
	found := map[string]string{}
	for _, m := range definition.FindAllStringSubmatch(text, -1) {
		if _, ok := found[m[1]]; !ok {
			found[m[1]] = m[2]
		}
	}
	return found
}

// value is the number or the symbol in a definition: ((MPI_Comm)0x44000000), (void *) -1 or
// OMPI_PREDEFINED_GLOBAL(MPI_Comm, ompi_mpi_comm_world).
func value(text string) string {
	if _, symbol, ok := strings.Cut(text, "OMPI_PREDEFINED_GLOBAL("); ok {
		_, symbol, _ = strings.Cut(strings.TrimSuffix(symbol, ")"), ",")
		return strings.TrimSpace(symbol)
	}
	number := regexp.MustCompile(`-?\b(0x[0-9a-fA-F]+|\d+)\b`).FindString(text)
	n, err := strconv.ParseInt(number, 0, 64)
	if err != nil {
		return text
	}
	return strconv.FormatInt(n, 10)
}

// TestConstants: the tables are what the headers say, where headers are installed.
func TestConstants(t *testing.T) {
	files := map[string]*abi{}
	add := func(a *abi, pattern string) {
		list, _ := filepath.Glob(pattern)
		for _, f := range list {
			files[f] = a
		}
	}
	add(&mpich, "/usr/include/*/mpich/mpi.h")
	add(&openMPI, "/usr/lib/*/openmpi/include/mpi.h")
	for _, dir := range filepath.SplitList(*headers) {
		add(&forum, filepath.Join(dir, "mpi_abi.h"))
		text, _ := os.ReadFile(filepath.Join(dir, "mpi.h"))
		if strings.Contains(string(text), "OMPI_PREDEFINED_GLOBAL") {
			add(&openMPI, filepath.Join(dir, "mpi.h"))
		} else {
			add(&mpich, filepath.Join(dir, "mpi.h"))
		}
	}
	if len(files) == 0 {
		t.Skip("no headers of MPI are installed (Debian: libopenmpi-dev, libmpich-dev)")
	}
	text := func(h handle) string {
		if h.symbol != "" {
			return h.symbol
		}
		return fmt.Sprint(h.number)
	}
	for file, a := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		have := constants(string(b))
		for name, want := range map[string]string{
			"MPI_COMM_WORLD": text(a.world), "MPI_BYTE": text(a.byte), "MPI_ERRORS_RETURN": text(a.errorsReturn),
			"MPI_IN_PLACE": fmt.Sprint(a.inPlace), "MPI_ANY_SOURCE": fmt.Sprint(a.anySource), "MPI_THREAD_FUNNELED": fmt.Sprint(a.funneled),
		} {
			if a == &openMPI && name == "MPI_THREAD_FUNNELED" {
				// The second constant of an enum without numbers.
				if !regexp.MustCompile(`MPI_THREAD_SINGLE,\s*MPI_THREAD_FUNNELED,`).Match(b) || a.funneled != 1 {
					t.Errorf("%s: %s is not %s", file, name, want)
				}
				continue
			}
			if got := value(have[name]); got != want {
				t.Errorf("%s: %s is %s (%q), the table of %s has %s", file, name, got, have[name], a.name, want)
			}
		}
		t.Logf("%s is like the table of %s", file, a.name)
	}
}

// TestChoices: the launcher says which libraries are tried, unless MILLRACE_MPI does.
func TestChoices(t *testing.T) {
	for _, c := range []struct {
		family   launcher.Family
		variable string
		want     []string
	}{
		{launcher.OpenMPI, "", slices.Concat(openMPI.libraries, forum.libraries)},
		{launcher.MPICH, "", slices.Concat(mpich.libraries, forum.libraries)},
		{launcher.Any, "", slices.Concat(openMPI.libraries, mpich.libraries, forum.libraries)},
		{launcher.OpenMPI, "mpich", mpich.libraries},
		{launcher.MPICH, "abi", forum.libraries},
		{launcher.MPICH, "/opt/lib/libmpi.so", []string{"/opt/lib/libmpi.so"}},
	} {
		list, install := choices(launcher.Launch{Family: c.family}, c.variable)
		var names []string
		for _, one := range list {
			names = append(names, one.name)
		}
		if !slices.Equal(names, c.want) {
			t.Errorf("family %d, %q: %v, not %v", c.family, c.variable, names, c.want)
		}
		if path := strings.Contains(c.variable, "/"); path != (len(install) == 0) {
			t.Errorf("%q: to install: %v", c.variable, install)
		}
	}
}

// TestNoLibrary: the error says who started the process, what was tried, and what to do.
func TestNoLibrary(t *testing.T) {
	l := launcher.Launch{By: "Test's mpirun (N=2)", Family: launcher.OpenMPI, Ranks: 2}
	for variable, words := range map[string][]string{
		"/no/such/libmpi.so": {"MILLRACE_MPI", "/no/such/libmpi.so", "cannot open shared object file", "a library's path"},
		"libc.so.6":          {"MILLRACE_MPI", "libc.so.6", "MPI_Get_library_version"},
	} {
		t.Setenv("MILLRACE_MPI", variable)
		_, err := find(l)
		if err == nil {
			t.Fatalf("%s was loaded", variable)
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q does not say %q", err, w)
			}
		}
	}
	saved := openMPI.libraries
	defer func() { openMPI.libraries = saved }()
	openMPI.libraries = []string{"libnone.so.40"}
	t.Setenv("MILLRACE_MPI", "openmpi")
	if _, err := find(l); err == nil || !strings.Contains(err.Error(), "openmpi-bin") {
		t.Errorf("%v does not say what to install", err)
	}
}

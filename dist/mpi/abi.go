//go:build linux && (amd64 || arm64)

package mpi

import "github.com/millrace-go/millrace/dist/internal/launcher"

// abi is what a program must know about a family of libraries besides the names of functions. In C
// it comes from mpi.h.
type abi struct {
	name         string
	family       launcher.Family // whose launcher it talks to
	world        handle          // MPI_COMM_WORLD
	byte         handle          // MPI_BYTE
	errorsReturn handle          // MPI_ERRORS_RETURN
	inPlace      int             // MPI_IN_PLACE, an address
	anySource    int             // MPI_ANY_SOURCE
	funneled     int             // MPI_THREAD_FUNNELED
	libraries    []string        // names to load
	install      string          // how to get one
}

// handle is a constant of a type that mpi.h leaves to the library: the address of a variable of the
// library, or a number.
type handle struct {
	symbol string
	number uintptr
}

var openMPI = abi{
	name: "openmpi", family: launcher.OpenMPI,
	world: handle{symbol: "ompi_mpi_comm_world"}, byte: handle{symbol: "ompi_mpi_byte"}, errorsReturn: handle{symbol: "ompi_mpi_errors_return"},
	inPlace: 1, anySource: -1, funneled: 1,
	libraries: []string{"libmpi.so.40", "libmpi.so"}, install: "Open MPI (Debian: openmpi-bin)",
}

// mpich is also the interface of MVAPICH and Intel MPI, by their agreement of 2013.
var mpich = abi{
	name: "mpich", family: launcher.MPICH,
	world: handle{number: 0x44000000}, byte: handle{number: 0x4c00010d}, errorsReturn: handle{number: 0x54000001},
	inPlace: -1, anySource: -2, funneled: 1,
	libraries: []string{"libmpich.so.12", "libmpi.so.12", "libmpi.so"}, install: "MPICH (Debian: mpich)",
}

// forum is the interface of MPI 5. The library says nothing about the launcher.
var forum = abi{
	name: "abi", family: launcher.Any,
	world: handle{number: 0x101}, byte: handle{number: 0x247}, errorsReturn: handle{number: 0x143},
	inPlace: 1, anySource: -1, funneled: 1024,
	libraries: []string{"libmpi_abi.so.1", "libmpi_abi.so"}, install: "a library with the interface of MPI 5 (libmpi_abi)",
}

// abis are all families, in the order in which they are tried.
var abis = []*abi{&openMPI, &mpich, &forum}

// talksTo reports whether libraries of the family may talk to a launcher of another one.
func (a *abi) talksTo(f launcher.Family) bool {
	return a.family == f || a.family == launcher.Any || f == launcher.Any
}

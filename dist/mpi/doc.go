// Package mpi moves bytes between the ranks of a job with the MPI library of the system, which
// mpirun, Slurm and Kubernetes' MPI operator start programs for. Import it for its side effect:
//
//	import _ "github.com/millrace-go/millrace/dist/mpi"
//
// A program is built without MPI, with cgo or without. The library is loaded when a World is opened:
// Open MPI, MPICH and what shares its binary interface (MVAPICH, Intel MPI), or a library with the
// interface of MPI 5 (libmpi_abi). The launcher's variables say which one; MILLRACE_MPI overrides
// them with a family (openmpi, mpich, abi) or a library's path. It needs Linux on amd64 or arm64.
//
// Of the source, read driver.go first.
package mpi

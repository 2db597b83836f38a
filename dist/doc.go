// Package dist makes the processes of one job work together: the ranks of a World exchange tensors.
//
// A driver, such as that of dist/mpi, moves bytes between the ranks. Package dist adds the numbers,
// in an order that does not depend on the driver, so that all ranks get the same bits. So far it
// has the interface of drivers only.
//
// Of the source, read driver.go first.
package dist

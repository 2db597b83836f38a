// Package dist makes the processes of one job work together: the ranks of a [World] sum and exchange
// tensors.
//
// A driver, such as that of dist/mpi, moves bytes between the ranks. Package dist adds the numbers,
// in an order that depends on the number of ranks only, so all ranks get the same bits with any
// driver. It compares what the ranks call, and turns mistakes, failures and silence into errors
// that name the ranks. See docs/scaling.md.
//
// Of the source, read driver.go first.
package dist

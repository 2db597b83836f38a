// Package files runs a function over a set of files in any number of processes, which survive each
// other: batch inference, conversion, feature extraction.
//
//	part, parts, err := files.Place() // of the launcher: Slurm, Kubernetes, mpirun; else 0 of 1
//	sum, err := files.Run(ctx, files.Job{In: names, Out: "out", Part: part, Parts: parts, Retries: 2},
//		func(ctx context.Context, in string, w io.Writer) error { ... })
//
// The processes do not talk to each other, and do not need MPI. A file is done when its output is in
// the folder Out, where it appears complete or not at all: written beside its place, moved to
// the disk, renamed. A process begins with its own part of the files, and goes on with those of other
// parts that are not done, so that it takes over what a killed or slow process leaves. Near
// the end two processes may compute the same file; the later one replaces equal bytes. When
// the job is started again, it computes only what is missing.
//
// The function should write the same bytes for the same file each time. A function that reads a file
// in batches makes them of one file: batches of several files would depend on the parts.
//
// Of the source, read run.go first.
package files

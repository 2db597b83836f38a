// Package data feeds programs that learn: records of files, folders and slices become batches
// on a device while the program computes with the batch before.
//
//	digits, err := data.CSV("digits.csv", data.CSVOptions{Label: "-1", Classes: 10, Shape: []int{1, 8, 8}})
//	train, held, err := data.Split(digits, 0.8, 1)
//	loader, err := data.NewLoader(train, data.Options{Batch: 64, Shuffle: true, Seed: 1})
//	for range epochs {
//		for b, err := range loader.Batches(ctx) {
//			if err != nil {
//				return err
//			}
//			loss, err := step.Run(ctx, b.X, b.Y)
//			b.Release()
//		}
//	}
//
// # Sources
//
// A [Source] has numbered records of one kind: [IDX] and [MNIST], [CIFAR10] and [CIFAR100],
// [Images] (a folder for each class), [CSV], [Windows] of the tokens of a text (see
// [Vocabulary]), and [FromColumns] and [FromTensors] for what is in memory. Three methods make
// another one. [Split], [Subset], [Concat], [Zip] and [Map] make sources of sources.
//
// # Order
//
// A [Loader] gives each record once in an epoch, in an order that depends on the seed, the
// epoch and the number of records only. [Loader.State] and [Loader.Restore] let a run go on
// where another one ended, with the same batches.
//
// # Images
//
// They come as Uint8, a quarter of what floats would take on the way. [RandomCrop], [RandomFlip]
// and [Normalize] are tensor ops for use within a step: they are computed on the device, fused
// with what follows, and in a Recording each run draws numbers anew.
//
// # Errors
//
// Files may come from anywhere. One that is damaged, cut off, or promises more than it holds,
// a label out of range and an image of another size are errors that wrap [ErrFormat] and
// name the file and, as a [*RecordError], the record; and no more memory is taken for a
// file than it has bytes, or than these decompress to. What is wrong with a file as a whole is
// found when it is opened, what is wrong with a record when that is read: the loop over
// batches then ends with the error.
package data

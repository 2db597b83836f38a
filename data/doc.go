// Package data feeds training programs: it makes batches on a device from records in files, folders
// and slices, while the program computes with the previous batch.
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
// A [Source] has numbered records of one kind. There are [IDX] and [MNIST], [CIFAR10] and
// [CIFAR100], [Images] (one folder for each class), [CSV], [Windows] of the tokens of a text (see
// [Vocabulary]), and [FromColumns] and [FromTensors] for data in memory. A program defines another
// one by three methods. [Split], [Subset], [Concat], [Zip] and [Map] make sources from sources.
//
// # Order
//
// In an epoch a [Loader] returns each record once, in an order that depends on the seed, the epoch
// and the number of records only. With [Loader.State] and [Loader.Restore] a run continues after
// another one with the same batches.
//
// # Images
//
// Images are Uint8, a quarter of the bytes of floats to transfer. [RandomCrop], [RandomFlip] and
// [Normalize] are tensor ops for use within a step: the device computes them, fused with the ops
// that follow, and in a Recording each run draws new numbers.
//
// # Errors
//
// Files may come from untrusted sources. A damaged or truncated file, a file that promises more
// than it holds, a label out of range and an image of another size are errors that wrap
// [ErrFormat]. They name the file and, as a [*RecordError], the record. A file takes no more memory
// than its bytes, or their decompressed size. Errors of a file as a whole are found when it is
// opened. Errors of a record are found when it is read; the loop over batches then ends with the
// error.
//
// Of the source, read loader.go first.
package data

// Dp trains a model in several processes, each of which computes a part of every batch, and runs the
// trained model over a folder of files.
//
//	go run ./examples/dp -digest                                         # one process
//	mpirun -n 4 go run ./examples/dp -digest                             # four, to the same bits
//	mpirun -n 4 go run ./examples/dp -model gpt -save gpt.safetensors
//	mpirun -n 4 go run ./examples/dp -save mlp.safetensors -infer in -out out
//
// With -save, a training that was stopped or killed goes on from the file when the same command is
// given again, with any number of processes that divides -leaves. SIGTERM to a process stops all of
// them after the step, with a last checkpoint.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"time"
)

// options of the program.
type options struct {
	settings
	save, infer, out string
	every, bucket    int
	digest           bool
	deadline         time.Duration
}

// settings are the options on which the result of training depends. They are in the checkpoint.
type settings struct {
	Model                string
	Data                 string `json:"-"`
	Batch, Steps, Leaves int
	LR                   float64
	Seed                 uint64
}

func main() {
	var o options
	flag.StringVar(&o.Model, "model", "mlp", "mlp (digits), gpt (characters, BurTorch's 46,289 parameters) or nano (nanoGPT's 10.7 million)")
	flag.StringVar(&o.Data, "data", "", "a file of digits for mlp, of text for the others; the program has a small one of each")
	flag.IntVar(&o.Batch, "batch", 64, "records a step, of all processes")
	flag.IntVar(&o.Steps, "steps", 1000, "steps to train for")
	flag.IntVar(&o.Leaves, "leaves", 4, "parts of a batch, a multiple of the number of processes: the result depends on it")
	flag.IntVar(&o.bucket, "bucket", 0, "bytes of gradients that are sent at once; 0: 4 MiB, and 1 MiB at first")
	flag.Float64Var(&o.LR, "lr", 3e-3, "the highest learning rate")
	flag.Uint64Var(&o.Seed, "seed", 1, "of first values, batches and dropout")
	flag.StringVar(&o.save, "save", "", "the file of the checkpoint")
	flag.IntVar(&o.every, "every", 100, "steps between checkpoints")
	flag.BoolVar(&o.digest, "digest", false, "print a hash of parameters and state at the end")
	flag.DurationVar(&o.deadline, "deadline", 5*time.Minute, "how long a process may keep the others waiting")
	flag.StringVar(&o.infer, "infer", "", "run the model of -save over the files of this folder: digits without labels, or texts, with the -model and -data of the training")
	flag.StringVar(&o.out, "out", "", "the folder for the results of -infer")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o options) error {
	switch {
	case flag.NArg() > 0:
		return errors.New("the program takes flags only: see -h")
	case o.Steps < 0 || o.every < 1:
		return errors.New("-steps must be at least 0, and -every at least 1")
	case o.Leaves < 1:
		return errors.New("-leaves must be at least 1: the result depends on it, so it cannot be the number of processes")
	case (o.infer == "") != (o.out == ""):
		return errors.New("-infer and -out go together")
	case o.infer != "" && o.save == "":
		return errors.New("-infer needs the file of a trained model: -save")
	}
	t, err := newTask(o.settings)
	if err != nil {
		return err
	}
	if o.infer != "" {
		return infer(ctx, o, t)
	}
	return train(ctx, o, t)
}

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/data"
	"github.com/millrace-go/millrace/dist/files"
	"github.com/millrace-go/millrace/nn"
)

// infer writes a file of answers for each file of a folder. It does the part of this process, and then
// what other processes leave.
func infer(ctx context.Context, o options, t *task) error {
	part, parts, err := files.Place()
	if err != nil {
		return err
	}
	if err := weights(o.save, t.model); err != nil {
		return err
	}
	entries, err := os.ReadDir(o.infer)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, filepath.Join(o.infer, e.Name()))
		}
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	sum, err := files.Run(ctx, files.Job{In: names, Out: o.out, Part: part, Parts: parts, Retries: 2},
		func(ctx context.Context, in string, w io.Writer) error { return answers(ctx, t, in, w) })
	fmt.Printf("part %d of %d: %d files done, %d were there, %d failed\n", part, parts, sum.Done, sum.Before, len(sum.Failed))
	return err
}

// weights loads the model of a checkpoint, which has more than the model.
func weights(path string, model any) error {
	var missing []string
	err := nn.LoadOptions{Partial: true, Unmatched: func(parameters, _ []string) { missing = parameters }}.Load(path, model)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("%s has no %s", path, strings.Join(missing, ", "))
	}
	return err
}

// answers writes a line for each record of a file. Batches are of one file, so the bytes do not
// depend on the parts.
func answers(ctx context.Context, t *task, in string, w io.Writer) error {
	source, err := t.read(in)
	if err != nil {
		return err
	}
	loader, err := data.NewLoader(source, data.Options{Batch: 256})
	if err != nil {
		return err
	}
	for b, err := range loader.Batches(ctx) {
		if err != nil {
			return err
		}
		answer := t.answer(b)
		values, err := millrace.Values[float32](answer)
		answer.Release()
		b.Release()
		if err != nil {
			return err
		}
		for _, v := range values {
			if _, err := fmt.Fprintln(w, v); err != nil {
				return err
			}
		}
	}
	return nil
}

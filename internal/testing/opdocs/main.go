// Command opdocs writes docs/operations.md and the pages of docs/operations: a row for
// every public operation on tensors.
//
//	go generate ./internal/testing/opdocs
//
// Input: the doc comments of packages millrace and linalg (signature and first sentence), and the
// table of internal/testing/optable, which has a group and an example for each operation. The
// generator runs the examples to find the dtypes that an operation takes, whether it has a gradient,
// and the result that the page prints: see probe.go. Output: docs/operations.md and the pages of
// docs/operations. Read main.go first.
//
// Engine part: no compatibility promise; use package millrace.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

//go:generate env MILLRACE_DEVICE=cpu:cache=off,compile=off go run . -root ../../..

func main() {
	root := flag.String("root", ".", "the folder of the module")
	flag.Parse()
	files, err := generate(*root)
	if err == nil {
		err = os.MkdirAll(filepath.Join(*root, filepath.FromSlash(folder)), 0o777)
	}
	for name, text := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(*root, filepath.FromSlash(name)), []byte(text), 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "opdocs:", err)
		os.Exit(1)
	}
}

// generate makes the pages, by path from the module's folder.
func generate(root string) (map[string]string, error) {
	funcs, err := declared(root)
	if err != nil {
		return nil, err
	}
	texts, err := exampleTexts(filepath.Join(root, "internal", "testing", "optable"))
	if err != nil {
		return nil, err
	}
	if err := complete(funcs, texts); err != nil {
		return nil, err
	}
	p, err := newProbe()
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, page := range pages {
		if files[folder+page.file], err = page.write(funcs, texts, p); err != nil {
			return nil, err
		}
	}
	files["docs/operations.md"] = index(funcs)
	return files, nil
}

// Command blockgen writes the block functions of the CPU's interpreter
// from the op table and the expansions of package ir.
//
//	go generate ./runtime/cpu/internal/interp
//
// Input: ir's table and expansions. Output: the files z_block_*.go of runtime/cpu. Read main.go
// first.
//
// Engine part: no compatibility promise; use package millrace.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	dir := flag.String("dir", ".", "the folder to write to")
	flag.Parse()
	files, err := generate()
	for name, text := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(*dir, name), text, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "blockgen:", err)
		os.Exit(1)
	}
}

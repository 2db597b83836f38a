package main

import (
	"fmt"
	"os"
	"strings"
)

// readmeExample returns the first Go block of a README and the text block after it, which is the
// program's output.
func readmeExample(path string) (program, output string, err error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	program, rest, ok := block(string(src), "go")
	if !ok {
		return "", "", fmt.Errorf("%s: no block marked go", path)
	}
	output, _, ok = block(rest, "text")
	if !ok {
		return "", "", fmt.Errorf("%s: no block marked text after the example", path)
	}
	return program, output, nil
}

// block returns the contents of the first fenced block of a language, and the text after it.
func block(src, lang string) (body, rest string, ok bool) {
	_, after, ok := strings.Cut("\n"+src, "\n```"+lang+"\n")
	if !ok {
		return "", "", false
	}
	return strings.Cut(after, "```")
}

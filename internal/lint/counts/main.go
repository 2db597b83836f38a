// Counts prints how large the module is and how its files depend on one another: a check that a
// change makes the house simpler. It measures the module in the current folder:
//
//	go run ./internal/lint/counts
//	go run ./internal/lint/counts -arrows stream
//
// Input: the source files of the module. Output: counts on standard output. Read main.go first.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/millrace-go/millrace/internal/lint"
)

func main() {
	arrows := flag.String("arrows", "", "print each arrow between the file groups of a `folder`")
	flag.Parse()
	tree, err := lint.Load(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if *arrows != "" {
		g := tree.Groups(*arrows)
		for _, a := range g.Arrows {
			fmt.Printf("%s -> %s: %s\n", a.From, a.To, strings.Join(a.Names, " "))
		}
		fmt.Println("best order, from the top:", strings.Join(g.Order, " "))
		return
	}
	print(tree)
}

func print(tree *lint.Tree) {
	c := tree.Count()
	fmt.Printf("%6d Go files at the root\n", c.RootFiles)
	fmt.Printf("%6d folders at the root\n", c.RootFolders)
	fmt.Printf("%6d hand-written lines of Go without tests\n", c.Written)
	fmt.Printf("%6d generated lines of Go\n", c.Generated)
	fmt.Printf("%6d lines of Go tests\n", c.Tests)
	fmt.Printf("%6d hand-written files without tests that name a 16-bit dtype\n", len(c.Narrow))
	all, up := 0, 0
	var lines []string
	for _, dir := range tree.Dirs() {
		g := tree.Groups(dir)
		all, up = all+len(g.Arrows), up+g.Up()
		if len(g.Order) >= 8 {
			lines = append(lines, fmt.Sprintf("%6d of %d in %s (%d groups)", g.Up(), len(g.Arrows), dir, len(g.Order)))
		}
	}
	fmt.Printf("%6d of %d arrows between groups of files run up\n", up, all)
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(b, a) })
	for _, l := range lines {
		fmt.Println(l)
	}
}

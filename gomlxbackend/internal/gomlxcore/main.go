// Command gomlxcore runs the tests that GoMLX has for its own packages, with
// its Go backend and with Millrace, and compares: a test that passes with the
// one and fails with the other is an error. The packages are a copy of the
// module as the module proxy has it, into which the import of the backend is
// written; GoMLX's tests have no other way to name one.
//
// With -run only packages whose path matches are tested. The newest versions are
//
//	GOTOOLCHAIN=go1.27.4 go run ./internal/gomlxcore -gomlx v0.28.16 -compute v0.1.14
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"regexp"
	"slices"
	"strings"
)

// backends to compare: the reference, and what is measured by it.
var backends = [2]string{"go", "millrace"}

func main() {
	log.SetFlags(0)
	pattern := flag.String("run", "", "regular expression of packages to test; all where empty")
	dir := flag.String("dir", "", "folder to work in, which is kept; a new one that is removed where empty")
	v := versions{}
	flag.StringVar(&v.gomlx, "gomlx", "v0.28.2", "version of GoMLX whose tests are run")
	flag.StringVar(&v.compute, "compute", "v0.1.3", "version of its backends' interface")
	verbose := flag.Bool("v", false, "print what tests that differ wrote")
	flag.Parse()
	ok, err := compare(v, *dir, *pattern, *verbose)
	if err != nil {
		log.Fatal("gomlxcore: ", err)
	}
	if !ok {
		os.Exit(1)
	}
}

// compare runs everything and reports whether Millrace does what Go does.
func compare(v versions, dir, pattern string, verbose bool) (bool, error) {
	match, err := regexp.Compile(pattern)
	if err != nil {
		return false, err
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "gomlxcore"); err != nil {
			return false, err
		}
		defer os.RemoveAll(dir)
	}
	w, err := prepare(v, dir)
	if err != nil {
		return false, err
	}
	pkgs, err := w.packages()
	if err != nil {
		return false, err
	}
	ok := true
	var total [2]counts
	for _, pkg := range pkgs {
		if !match.MatchString(pkg) {
			continue
		}
		bin, err := w.build(pkg)
		if err != nil {
			return false, err
		}
		if bin == "" {
			continue // without tests
		}
		var results [2]map[string]result
		for i, b := range backends {
			if results[i], err = w.run(pkg, bin, b); err != nil {
				return false, err
			}
			total[i].add(results[i])
		}
		line := fmt.Sprintf("%-40s", strings.TrimPrefix(pkg, module+"/"))
		for i, b := range backends {
			var c counts
			c.add(results[i])
			line += fmt.Sprintf("  %s: %s", b, c)
		}
		fmt.Println(line)
		if differ := worse(results[0], results[1]); len(differ) > 0 {
			ok = false
			for _, name := range differ {
				fmt.Printf("    %s: %s with %s, %s with %s\n", name, results[0][name].outcome, backends[0], results[1][name].outcome, backends[1])
				if verbose {
					fmt.Println(results[1][name].output)
				}
			}
		}
	}
	for i, b := range backends {
		fmt.Printf("%s: %s\n", b, total[i])
	}
	return ok, nil
}

// worse are the tests that pass with the first and neither pass nor skip with
// the second. A test with a subtest that fails says no more than that one does,
// and a subtest that the first leaves out is compared with nothing. What a test
// that skips has below it is skipped too.
func worse(first, second map[string]result) []string {
	var list []string
	for name, r := range first {
		if r.outcome == "PASS" && !fine(second, name) && !below(second, name) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// fine reports that a test passes, or it or one it is part of skips.
func fine(results map[string]result, name string) bool {
	if o := results[name].outcome; o == "PASS" || o == "SKIP" {
		return true
	}
	for i, c := range name {
		if c == '/' && results[name[:i]].outcome == "SKIP" {
			return true
		}
	}
	return false
}

// below reports a test with a subtest that fails.
func below(second map[string]result, name string) bool {
	for sub, r := range second {
		if strings.HasPrefix(sub, name+"/") && r.outcome == "FAIL" {
			return true
		}
	}
	return false
}

// counts of tests and subtests.
type counts struct{ pass, skip, fail int }

func (c *counts) add(results map[string]result) {
	for _, r := range results {
		switch r.outcome {
		case "PASS":
			c.pass++
		case "SKIP":
			c.skip++
		default:
			c.fail++
		}
	}
}

func (c counts) String() string {
	return fmt.Sprintf("%d pass, %d skip, %d fail", c.pass, c.skip, c.fail)
}

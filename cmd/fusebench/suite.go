package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/millrace-go/millrace"
)

// A Suite is a family of programs that are timed side by side.
type Suite struct {
	name  string
	about string // in a few words what is timed
	shape shape  // the size that -shape changes; empty if the names of the variants give the size
	sizes string // what its numbers mean
	modes list   // in which it is timed unless others are named
	// variants are those that run unless others are named.
	variants func(s shape) []string
	// free says that variants of other names exist, and that problem checks name and shape.
	free bool
	// problem is a variant at a size; its errors are the user's. Its inputs are arrays of as,
	// whose values are made later.
	problem func(variant string, s shape, as *arrays) (*problem, error)
}

// always returns variants that are the same for every shape.
func always(variants ...string) func(shape) []string {
	return func(shape) []string { return variants }
}

// of returns a variant at a size, after the checks that suites have in common.
func (q *Suite) of(variant string, s shape, as *arrays) (*problem, error) {
	if !q.free {
		if err := oneOf(variant, q.variants(s)); err != nil {
			return nil, err
		}
		if err := ranked(s, q.sizes); err != nil {
			return nil, err
		}
	}
	return q.problem(variant, s, as)
}

// A problem is one variant at one size.
type problem struct {
	shape  shape // what the row reports
	inputs []*array
	// program is the variant, written with package millrace's public operations.
	program program
	oracle  *oracle

	// intermediate is the number of elements of the largest tensor that the program writes
	// between its inputs and its result.
	intermediate int
	flops        float64  // of its contractions
	gemm         *gemm    // the same product by another library
	reads        bool     // compared with reading its inputs
	versus       []versus // other variants that it is compared with
}

type program func(x []*millrace.Tensor) *millrace.Tensor

// A versus compares a variant's time with another's, in the same mode.
type versus struct {
	variant string
	// note gets this variant's times and the other's, of the same rounds.
	note func(r *Row, own, other []float64)
}

// bytes returns the bytes of the inputs and of the result together.
func (p *problem) bytes(dt dtype) int {
	return p.inputBytes() + dt.size()*p.oracle.elements()
}

func (p *problem) inputBytes() int {
	n := 0
	for _, a := range p.inputs {
		n += a.bytes()
	}
	return n
}

// The modes of most suites, and of those for which the CPU device has a choice: the tiles of
// contractions.
var (
	bothModes = list{fused, unfused}
	allModes  = list{fused, tuned, unfused}
)

// suites are the suites that have a command and that explain knows. explain also knows chain and
// serve.
var suites = []*Suite{geluSuite, softmaxSuite, layerNormSuite, attentionSuite, matmulSuite, mlpSuite, reduceSuite, convSuite}

// setupSuite sets up a suite's command.
func setupSuite(s *Suite) setup {
	return func() ([]cli.Flag, action) {
		c := &config{dtype: dtype{millrace.Float32}, modes: s.modes}
		flags := slices.Concat(c.suiteFlags(s), c.targetFlags(), c.timingFlags())
		return flags, func(io streams, args []string) error {
			if err := c.checkTiming(args); err != nil {
				return err
			}
			return timeSuite(c, s, io)
		}
	}
}

func suiteNamed(list []*Suite, args []string) (*Suite, error) {
	for _, s := range list {
		if slices.Equal(args, []string{s.name}) {
			return s, nil
		}
	}
	return nil, usageError("want one of %s, got %q", strings.Join(suiteNames(list), ", "), args)
}

func suiteNames(list []*Suite) []string {
	var names []string
	for _, s := range list {
		names = append(names, s.name)
	}
	return names
}

// problems returns the problems of the selected variants, with their inputs made.
func (c *config) problems(s *Suite) (map[string]*problem, error) {
	if len(c.shape) == 0 {
		c.shape = s.shape
	}
	if len(c.variants) == 0 {
		c.variants = s.variants(c.shape)
	}
	as := newArrays(c.dtype)
	ps := map[string]*problem{}
	for _, v := range c.variants {
		p, err := s.of(v, c.shape, as)
		if err != nil {
			return nil, err
		}
		ps[v] = p
	}
	as.fill()
	return ps, nil
}

// oneOf returns an error for a variant that a suite does not have.
func oneOf(variant string, known []string) error {
	if slices.Contains(known, variant) {
		return nil
	}
	return usageError("-variants %q: want some of %s", variant, strings.Join(known, ", "))
}

// ranked returns an error for a shape that does not have these sizes, if they are named.
func ranked(s shape, sizes string) error {
	if want := strings.Count(sizes, ",") + 1; want > 1 && len(s) != want {
		return usageError("-shape %s: want %d numbers: %s", shapeText(s), want, sizes)
	}
	return nil
}

// fitsMemory returns an error for tensors that are too large to index.
func fitsMemory(shapes ...shape) error {
	for _, s := range shapes {
		n := 1
		for _, d := range s {
			if n > maxElements/d {
				return usageError("a tensor of shape %s would have more than %d elements", shapeText(s), maxElements)
			}
			n *= d
		}
	}
	return nil
}

// axisOf splits a shape at an axis: the number of rows before it, its size, and the number of
// elements after it.
func axisOf(s shape, axis int) (outer, n, inner int) {
	return s[:axis].len(), s[axis], s[axis+1:].len()
}

// columns calls f with every element's position, row by row, and its column.
func columns(rows, inner int, f func(at, column int)) {
	for i := range rows {
		for j := range inner {
			f(i*inner+j, j)
		}
	}
}

func sized(name string, n int) string { return fmt.Sprintf("%s-%d", name, n) }

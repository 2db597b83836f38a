// Command fusebench times millrace: the same program with its operations fused
// into few kernels and with one kernel for each, on every device of the
// machine, against a plain copy of the same bytes.
//
//	fusebench gelu       three GELUs
//	fusebench softmax    softmax along the last and a middle axis
//	fusebench layernorm  layer normalisation along the last and a middle axis
//	fusebench attention  attention, plain, causal and filled
//	fusebench matmul     matmul, alone and followed by bias and GELU
//	fusebench mlp        two layers with GELU between
//	fusebench reduce     sum, max and mean, against reading the tensor
//	fusebench conv       convolutions
//	fusebench chain      many small operations: the overhead of recording
//	fusebench serve      requests to a small network from many goroutines at once
//	fusebench train      training steps of models small and large
//	fusebench tiny       graphs of a few scalars, forward and backward, against plain Go
//	fusebench start      the first result of a new process, with empty and warm caches
//	fusebench peaks      the peaks of this machine: multiply and add, copy, read
//	fusebench compare    two reports in JSON: what became faster or slower
//	fusebench tables     tables and pictures of documents, written from reports in JSON
//	fusebench devices    what is present, what is missing and how to get it
//	fusebench explain    the kernels a program becomes, and their source
//	fusebench plans      the plan cache and bundles: list, ship, prune
//
// Built with -tags openblas, matmul is also compared with OpenBLAS.
//
// Flags have one dash or two. fusebench completion bash (or zsh, fish, pwsh) prints
// what a shell needs to complete them. Nothing but the result goes to standard
// output.
//
// Of the source, read main.go first.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/millrace-go/millrace/internal/hostinfo"
)

// Exit codes, as the go command uses them.
const (
	exitFailed = 1 // something did not work
	exitUsage  = 2 // the command line was wrong
)

// streams are a command's standard output and error.
type streams struct{ out, err io.Writer }

// An action does what a command is for, with its operands.
type action func(io streams, args []string) error

// A setup makes a command's flags, and the action that runs it with their values.
type setup func() ([]cli.Flag, action)

// newCommand makes fusebench and its subcommands, for one run.
func newCommand(io streams) *cli.Command {
	leaf := func(name, args, help string, s setup) *cli.Command {
		flags, do := s()
		return &cli.Command{
			Name: name, ArgsUsage: args, Usage: help, Flags: flags, HideHelpCommand: true, OnUsageError: asUsage,
			Action: func(_ context.Context, c *cli.Command) error { return named(c, do(io, c.Args().Slice())) },
		}
	}
	var commands []*cli.Command
	for _, s := range suites {
		commands = append(commands, leaf(s.name, "", "time "+s.about, setupSuite(s)))
	}
	root := group("fusebench", "time millrace: the same program fused and unfused, on every device, against a plain copy", slices.Concat(commands, []*cli.Command{
		leaf("chain", "", "time a chain of operations on a small tensor", setupChain),
		leaf("serve", "", "time "+serveSuite.about, setupServe),
		leaf("train", "", "time training steps: loss, gradients, update", setupTrain),
		leaf("tiny", "", "time graphs of a few scalars, forward and backward, against plain Go", setupTiny),
		leaf("start", "", "time the first result of new processes, with an empty and a warm cache", setupStart),
		leaf("peaks", "", "time the machine's peaks: multiply and add, copy, read", setupPeaks),
		renamed("roof", "peaks"),
		leaf("compare", "OLD NEW", "compare two reports in JSON and show which rows became faster or slower, beyond chance", setupCompare),
		leaf("tables", "PAGE...", "write the tables and pictures of documents from the reports that the documents name", setupTables),
		leaf("devices", "", "list the devices that are present, and say how to get the others", setupDevices),
		leaf("explain", strings.Join(suiteNames(explained), "|"), "show the segment, its kernels, the reasons and the generated source", setupExplain),
		group("plans", "list, show, ship and prune the plans of a cache or a bundle", []*cli.Command{
			leaf("list", "[DIR|BUNDLE]", "list the entries of a cache or a bundle", setupPlansList),
			leaf("show", "NAME...", "show entries in full: their device, segment and plan", setupPlansShow),
			leaf("export", "[DIR]", "make a bundle of a cache, to ship with a program", setupPlansExport),
			leaf("gen", "BUNDLE", "write a Go package that holds a bundle", setupPlansGen),
			leaf("verify", "DIR|BUNDLE...", "check every entry, and report whether this version can use it", setupPlansVerify),
			leaf("prune", "[DIR]", "remove entries from a cache that are damaged, old or of another version", setupPlansPrune),
		}),
	}))
	root.Version = hostinfo.Version() + ", " + goruntime.Version() + " " + goruntime.GOOS + "/" + goruntime.GOARCH
	return root
}

// described lists suites and variants, for help.
func described() string {
	b := new(strings.Builder)
	fmt.Fprintln(b, "Each suite runs these variants unless -variants names others:")
	for _, s := range suites {
		fmt.Fprintf(b, "\n%-10s %s", s.name, strings.Join(s.variants(s.shape), ", "))
	}
	fmt.Fprintf(b, "\n%-10s %s", "train", strings.Join(lessonNames, ", "))
	fmt.Fprintf(b, "\n%-10s %s", "tiny", strings.Join(tinyVariants, ", "))
	fmt.Fprint(b, "\n\nfusebench completion bash (or zsh, fish, pwsh) prints a script by which a shell completes them.")
	return b.String()
}

// renamed is a command by an earlier name, with any flags: it says the new one.
func renamed(old, now string) *cli.Command {
	return &cli.Command{
		Name: old, Hidden: true, SkipFlagParsing: true,
		Action: func(_ context.Context, c *cli.Command) error {
			return named(c.Root(), usageError("unknown command %q: its name is now %s", old, now))
		},
	}
}

// group makes a command that only has subcommands.
func group(name, help string, commands []*cli.Command) *cli.Command {
	return &cli.Command{
		Name: name, Usage: help, Commands: commands, OnUsageError: asUsage,
		Action: func(_ context.Context, c *cli.Command) error {
			what := "no command"
			if c.Args().Present() {
				what = fmt.Sprintf("no command %q", c.Args().First())
			}
			var names []string
			for _, sub := range c.VisibleCommands() {
				names = append(names, sub.Name)
			}
			return named(c, usageError("%s: want one of %s", what, strings.Join(names, ", ")))
		},
	}
}

// named puts the command's name before an error.
func named(c *cli.Command, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", c.FullName(), err)
}

// asUsage marks errors that the parser of flags found.
func asUsage(_ context.Context, c *cli.Command, err error, _ bool) error {
	return named(c, usageError("%w; %s -h lists the flags", err, c.FullName()))
}

// errUsage marks errors of the command line.
var errUsage = errors.New("usage")

func usageError(format string, args ...any) error {
	return fmt.Errorf("%w: %w", errUsage, fmt.Errorf(format, args...))
}

func main() {
	os.Exit(run(os.Args[1:], streams{os.Stdout, os.Stderr}))
}

// run is fusebench without its process.
func run(args []string, io streams) int {
	c := newCommand(io)
	c.Writer, c.ErrWriter, c.EnableShellCompletion = io.out, io.err, true
	c.Description = described()
	err := c.Run(context.Background(), append([]string{c.Name}, args...))
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintln(io.err, err)
		return exitUsage
	}
	fmt.Fprintln(io.err, err)
	return exitFailed
}

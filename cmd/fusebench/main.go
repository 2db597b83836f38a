// Command fusebench times millrace: the same program with its operations fused
// into few kernels and with one kernel for each, on every device of the
// machine, against a plain copy of the same bytes.
//
//	fusebench gelu       three GELUs
//	fusebench softmax    softmax along the last and a middle axis
//	fusebench layernorm  layer normalisation along the last and a middle axis
//	fusebench attention  attention, plain, causal and filled
//	fusebench matmul     products of matrices, alone and with bias and GELU behind
//	fusebench mlp        two layers with GELU between
//	fusebench reduce     sum, max and mean, against reading the tensor
//	fusebench conv       convolutions
//	fusebench chain      many small operations: the overhead of recording
//	fusebench serve      requests to a small network from many goroutines at once
//	fusebench start      what a new process waits for, with empty and warm caches
//	fusebench devices    what is present, what is missing and how to get it
//	fusebench explain    the kernels a program becomes, and their source
//	fusebench plans      what is remembered of programs: list it, ship it, prune it
//
// Built with -tags openblas, matmul is also compared with OpenBLAS.
//
// Nothing but the result goes to standard output.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Exit codes, as the go command uses them.
const (
	exitFailed = 1 // something did not work
	exitUsage  = 2 // the command line was wrong
)

// A command is one subcommand.
type command struct {
	name, args, help string
	// setup adds the command's flags to fs and returns what runs it.
	setup func(fs *flag.FlagSet) func(io streams, args []string) error
	subs  []command // where the command is a group of others
}

// streams are a command's standard output and error.
type streams struct{ out, err io.Writer }

var commands = slices.Concat(suiteCommands(), []command{
	{name: "chain", args: "[flags]", help: "time a chain of operations on a small tensor", setup: setupChain},
	{name: "serve", args: "[flags]", help: "time " + serveSuite{}.About(), setup: setupServe},
	{name: "start", args: "[flags]", help: "time the first result of new processes, with empty and warm caches", setup: setupStart},
	{name: "devices", help: "list devices: what is present, and how to get what is missing", setup: setupDevices},
	{name: "explain", args: strings.Join(suiteNames(explained), "|") + " [flags]", help: "show segment, kernels, reasons and generated source", setup: setupExplain},
	{name: "plans", help: "what is remembered of programs, in a cache or a bundle", subs: planCommands},
})

// suiteCommands time a suite each.
func suiteCommands() []command {
	var cs []command
	for _, s := range suites {
		cs = append(cs, command{name: s.Name(), args: "[flags]", help: "time " + s.About(), setup: setup(s)})
	}
	return cs
}

// errUsage marks errors of the command line.
var errUsage = errors.New("usage")

func usageError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errUsage, fmt.Sprintf(format, args...))
}

func main() {
	os.Exit(run(os.Args[1:], streams{os.Stdout, os.Stderr}))
}

// run is fusebench without the process around it.
func run(args []string, io streams) int { return dispatch("fusebench", commands, args, io) }

// dispatch runs one of the commands of a group.
func dispatch(group string, commands []command, args []string, io streams) int {
	if len(args) == 0 {
		usage(io.err, group, commands)
		return exitUsage
	}
	switch args[0] {
	case "-h", "-help", "--help", "help":
		usage(io.err, group, commands)
		return 0
	}
	for _, c := range commands {
		if c.name == args[0] {
			return c.run(group+" "+c.name, args[1:], io)
		}
	}
	fmt.Fprintf(io.err, "%s: no command %q\n", group, args[0])
	usage(io.err, group, commands)
	return exitUsage
}

// run runs a command that is called by this name.
func (c command) run(name string, args []string, io streams) int {
	if len(c.subs) > 0 {
		return dispatch(name, c.subs, args, io)
	}
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.err)
	fs.Usage = func() {
		fmt.Fprintf(io.err, "usage: %s %s\n", name, c.args)
		fs.PrintDefaults()
	}
	do := c.setup(fs)
	rest, err := parse(fs, args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return exitUsage // fs has said why
	}
	err = do(io, rest)
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintf(io.err, "%s: %v\n", name, err)
		return exitUsage
	case err != nil:
		fmt.Fprintf(io.err, "%s: %v\n", name, err)
		return exitFailed
	}
	return 0
}

// parse takes flags before and after operands: fusebench explain gelu -dtype float64.
func parse(fs *flag.FlagSet, args []string) (operands []string, err error) {
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		args = fs.Args()
		if len(args) == 0 {
			return operands, nil
		}
		operands, args = append(operands, args[0]), args[1:]
	}
}

func usage(w io.Writer, group string, commands []command) {
	fmt.Fprintf(w, "usage: %s command [flags]\n", group)
	for _, c := range commands {
		fmt.Fprintf(w, "  %-9s %s\n", c.name, c.help)
	}
	fmt.Fprintf(w, "%s command -h lists a command's flags.\n", group)
}

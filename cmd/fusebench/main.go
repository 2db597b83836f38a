// Command fusebench times millrace: the same program with its operations fused
// into few kernels and with one kernel for each, on every device of the
// machine, against a plain copy of the same bytes.
//
//	fusebench gelu       three GELUs
//	fusebench softmax    softmax along the last and a middle axis
//	fusebench layernorm  layer normalisation along the last and a middle axis
//	fusebench attention  attention, plain and causal
//	fusebench matmul     products of matrices, alone and with bias and GELU behind
//	fusebench mlp        two layers with GELU between
//	fusebench reduce     sum, max and mean, against reading the tensor
//	fusebench conv       convolutions
//	fusebench chain      many small operations: the overhead of recording
//	fusebench devices    what is present, what is missing and how to get it
//	fusebench explain    the kernels a program becomes, and their source
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
}

// streams are a command's standard output and error.
type streams struct{ out, err io.Writer }

var commands = slices.Concat(suiteCommands(), []command{
	{"chain", "[flags]", "time a chain of operations on a small tensor", setupChain},
	{"devices", "", "list devices: what is present, and how to get what is missing", setupDevices},
	{"explain", strings.Join(suiteNames(explained), "|") + " [flags]", "show segment, kernels, reasons and generated source", setupExplain},
})

// suiteCommands time a suite each.
func suiteCommands() []command {
	var cs []command
	for _, s := range suites {
		cs = append(cs, command{s.Name(), "[flags]", "time " + s.About(), setup(s)})
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
func run(args []string, io streams) int {
	if len(args) == 0 {
		usage(io.err)
		return exitUsage
	}
	switch args[0] {
	case "-h", "-help", "--help", "help":
		usage(io.err)
		return 0
	}
	for _, c := range commands {
		if c.name == args[0] {
			return c.run(args[1:], io)
		}
	}
	fmt.Fprintf(io.err, "fusebench: no command %q\n", args[0])
	usage(io.err)
	return exitUsage
}

func (c command) run(args []string, io streams) int {
	fs := flag.NewFlagSet("fusebench "+c.name, flag.ContinueOnError)
	fs.SetOutput(io.err)
	fs.Usage = func() {
		fmt.Fprintf(io.err, "usage: fusebench %s %s\n", c.name, c.args)
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
		fmt.Fprintf(io.err, "fusebench %s: %v\n", c.name, err)
		return exitUsage
	case err != nil:
		fmt.Fprintf(io.err, "fusebench %s: %v\n", c.name, err)
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

func usage(w io.Writer) {
	fmt.Fprintln(w, "usage: fusebench command [flags]")
	for _, c := range commands {
		fmt.Fprintf(w, "  %-9s %s\n", c.name, c.help)
	}
	fmt.Fprintln(w, "fusebench command -h lists a command's flags.")
}

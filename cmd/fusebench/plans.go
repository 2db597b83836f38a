package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/millrace-go/millrace/plancache"
)

// planCommands work on what is remembered of programs.
var planCommands = []command{
	{name: "list", args: "[flags] [DIR|BUNDLE]", help: "list the entries of a cache or a bundle", setup: setupPlansList},
	{name: "show", args: "[flags] NAME...", help: "show entries whole: what they were made for, segments and plans", setup: setupPlansShow},
	{name: "export", args: "-o FILE [flags] [DIR]", help: "make a bundle of a cache, to ship with a program", setup: setupPlansExport},
	{name: "gen", args: "-o DIR [flags] BUNDLE", help: "write a Go package that holds a bundle and the CPU's kernels", setup: setupPlansGen},
	{name: "verify", args: "[flags] DIR|BUNDLE...", help: "check every entry, and whether this version can use it", setup: setupPlansVerify},
	{name: "prune", args: "[flags] [DIR]", help: "remove from a cache what is damaged, of another version, or old", setup: setupPlansPrune},
}

// planPath is the path that an operand names, else the user's cache directory.
func planPath(operands []string) (string, error) {
	switch len(operands) {
	case 0:
		dir, err := plancache.Dir()
		if err == nil && dir == plancache.Off {
			err = fmt.Errorf("%s is %s: name a directory", plancache.Variable, plancache.Off)
		}
		return dir, err
	case 1:
		return operands[0], nil
	}
	return "", usageError("unexpected %q", operands[1])
}

// kindsFlag chooses among entries.
func kindsFlag(fs *flag.FlagSet, kinds *list) {
	fs.Var(kinds, "kinds", "`kinds` of entries, such as plan,object (default: all)")
}

// planFormats are the formats of lists.
var planFormats = map[string]func(io.Writer, []planRow) error{
	"table": planTable,
	"json":  planJSON,
}

func planFormatNames() string {
	return strings.Join(slices.Sorted(maps.Keys(planFormats)), ", ")
}

// formatFlag chooses one of the formats, checked when the command runs.
func formatFlag(fs *flag.FlagSet, format *string) {
	fs.StringVar(format, "format", "table", "`format` of the result: "+planFormatNames())
}

func checkFormat(format string) error {
	if planFormats[format] == nil {
		return usageError("-format %q: want one of %s", format, planFormatNames())
	}
	return nil
}

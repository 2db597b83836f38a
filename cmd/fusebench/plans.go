package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/millrace-go/millrace/plancache"
)

// planPath returns the path that an operand names, or else the user's cache directory.
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

// kindsFlag makes the flag that selects kinds of entries.
func kindsFlag(kinds *list) cli.Flag {
	return &cli.GenericFlag{Name: "kinds", Value: kinds, Usage: "`kinds` of entries, such as plan,object (default: all)"}
}

// planFormats are the formats of lists.
var planFormats = map[string]func(io.Writer, []planRow) error{
	"table": planTable,
	"json":  planJSON,
}

func planFormatNames() string {
	return strings.Join(slices.Sorted(maps.Keys(planFormats)), ", ")
}

// formatFlag makes the flag that selects one of the formats.
func formatFlag(format *string) cli.Flag {
	return &cli.StringFlag{Name: "format", Value: "table", Destination: format, Validator: wordOf(slices.Sorted(maps.Keys(planFormats))...), Usage: "`format` of the result: " + planFormatNames()}
}

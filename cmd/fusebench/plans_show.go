package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v3"
)

func setupPlansShow() ([]cli.Flag, action) {
	var from, out string
	flags := []cli.Flag{
		&cli.StringFlag{Name: "from", Destination: &from, Usage: "cache `directory` or bundle file (default: the one of MILLRACE_CACHE, else the user's cache)"},
		outFlag(&out),
	}
	return flags, func(io streams, names []string) error {
		if len(names) == 0 {
			return usageError("name entries, which fusebench plans list prints")
		}
		var at []string
		if from != "" {
			at = []string{from}
		}
		path, err := planPath(at)
		if err != nil {
			return err
		}
		all, err := readSource(path, nil)
		if err != nil {
			return err
		}
		var buf bytes.Buffer
		for _, name := range names {
			i := slices.IndexFunc(all, func(r remembered) bool { return r.Name == name })
			if i < 0 {
				return fmt.Errorf("no %s in %s", name, path)
			}
			all[i].show(&buf)
		}
		return deliverBytes(io.out, buf.Bytes(), out)
	}
}

// show writes all parts of an entry that are text.
func (r *remembered) show(w *bytes.Buffer) {
	v := r.judge()
	fmt.Fprintf(w, "# %s, %d bytes, %s\n\n", r.Name, r.Size, strings.TrimSuffix(v.state+": "+v.why, ": "))
	if scope := r.scope(); scope != "" {
		fmt.Fprintf(w, "made for\n")
		for field := range strings.FieldsSeq(scope) {
			fmt.Fprintf(w, "  %s\n", field)
		}
		fmt.Fprintln(w)
	}
	switch {
	case r.Err != nil:
	case utf8.Valid(r.Value):
		fmt.Fprintf(w, "%s\n", strings.TrimRight(string(r.Value), "\n"))
	default:
		fmt.Fprintf(w, "%d bytes that are no text\n", len(r.Value))
	}
	fmt.Fprintln(w)
}

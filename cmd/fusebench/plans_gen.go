package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/sniff"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/runtime/cpu"
)

func setupPlansGen() ([]cli.Flag, action) {
	var dir, name string
	var cgo bool
	flags := []cli.Flag{
		&cli.StringFlag{Name: "o", Destination: &dir, Validator: folder, Usage: "`directory` of the package, made if need be; files of it that an earlier run wrote are replaced"},
		&cli.StringFlag{Name: "pkg", Destination: &name, Usage: "`name` of the package (default: that of the directory)"},
		&cli.BoolFlag{Name: "cgo", Value: true, Destination: &cgo, Usage: "compile the CPU's kernels into the program; otherwise it holds plans only, and the interpreter runs them until a compiler did its work"},
	}
	return flags, func(io streams, args []string) error {
		switch {
		case dir == "":
			return usageError("no directory: -o")
		case len(args) == 0:
			return usageError("no bundle: fusebench plans export writes one")
		case len(args) > 1:
			return usageError("unexpected %q", args[1])
		case name == "":
			name = filepath.Base(dir)
		}
		if !token.IsIdentifier(name) {
			return usageError("%q is no name of a package: -pkg", name)
		}
		data, err := sniff.ReadFile(args[0])
		if err != nil {
			return err
		}
		g, err := readGenerated(name, data)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		if !cgo {
			g.notes = nil
		}
		files, err := g.files()
		if err != nil {
			return err
		}
		if err := writePackage(dir, files); err != nil {
			return err
		}
		g.tell(io, dir, cgo)
		return nil
	}
}

// generated is a package while it is generated.
type generated struct {
	name    string
	plans   int
	bundle  []byte   // without entries that only the generator needs
	notes   []string // of kernels that ran
	kernels int      // printed kernels
	left    []leftOut
}

// leftOut says what is missing in the package, and why.
type leftOut struct {
	what string
	why  error
}

// readGenerated splits a bundle: plans and tunings stay in a bundle, notes of kernels become
// code.
func readGenerated(name string, data []byte) (*generated, error) {
	b, err := plancache.ReadBundle(data)
	if err != nil {
		return nil, err
	}
	g := &generated{name: name}
	var keep []plancache.Entry
	for e, err := range b.All() {
		if err != nil {
			return nil, err
		}
		switch e.Kind {
		case cpu.KindKernel:
			g.notes = append(g.notes, e.Key)
			continue
		case kindPlan:
			scope, _ := plancache.SplitKey(e.Key)
			if why := fusion.Foreign(scope); why != "" {
				g.left = append(g.left, leftOut{"plans", errors.New(why)})
				continue
			}
			g.plans++
		}
		keep = append(keep, e)
	}
	var buf bytes.Buffer
	if err := plancache.WriteBundle(&buf, b.Made(), keep); err != nil {
		return nil, err
	}
	g.bundle = buf.Bytes()
	return g, nil
}

// Names of generated files. All files of a package have the same prefix, so that the next run can
// tell which to remove.
const (
	genPrefix  = "z_millrace_"
	genBundle  = genPrefix + "plans.bundle"
	genPlans   = genPrefix + "plans.go"
	genKernels = genPrefix + "kernels.go"
)

// files returns the package's files by name.
func (g *generated) files() (map[string][]byte, error) {
	files := map[string][]byte{genBundle: g.bundle}
	var src *cpu.ShipSource
	if len(g.notes) > 0 {
		var err error
		if src, err = cpu.PrintShipped(prefixOf(g.name, g.notes), g.notes); err != nil {
			return nil, err
		}
		g.kernels = len(src.Kernels)
		for _, l := range src.Left {
			g.left = append(g.left, leftOut{fmt.Sprintf("kernel %q", firstLines(l.Note)), l.Err})
		}
	}
	if g.kernels > 0 {
		for name, text := range genC(src) {
			files[name] = text
		}
		text, err := genKernelsGo(g.name, src)
		if err != nil {
			return nil, err
		}
		files[genKernels] = text
	}
	text, err := genPlansGo(g)
	if err != nil {
		return nil, err
	}
	files[genPlans] = text
	return files, nil
}

// firstLines returns enough of a note to recognise it.
func firstLines(note string) string {
	const most = 120
	if len(note) > most {
		return note[:most] + "…"
	}
	return note
}

// writePackage writes files into a directory and removes the other files of an earlier run.
func writePackage(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	before, err := filepath.Glob(filepath.Join(dir, genPrefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range before {
		if files[filepath.Base(path)] != nil {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o666); err != nil {
			return err
		}
	}
	return nil
}

// tell prints what was written and what was left out.
func (g *generated) tell(io streams, dir string, cgo bool) {
	fmt.Fprintf(io.out, "%s: package %s with %d plans and %d kernels\n", dir, g.name, g.plans, g.kernels)
	for _, l := range g.left {
		fmt.Fprintf(io.out, "left out: %s: %v\n", strings.ReplaceAll(l.what, "\n", " "), l.why)
	}
	if cgo && g.kernels == 0 {
		fmt.Fprintln(io.out, "The bundle says of no kernel that it ran on the CPU: record it with a build that has cgo, and not with tier=0.")
	}
}

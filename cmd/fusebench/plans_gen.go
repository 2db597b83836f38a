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

	"github.com/urfave/cli/v3"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/sniff"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/plancache/lookup"
)

func setupPlansGen() ([]cli.Flag, action) {
	var dir, name string
	flags := []cli.Flag{
		&cli.StringFlag{Name: "o", Destination: &dir, Validator: folder, Usage: "`directory` of the package, made if it is missing; files of an earlier run are replaced"},
		&cli.StringFlag{Name: "pkg", Destination: &name, Usage: "`name` of the package (default: that of the directory)"},
	}
	return flags, func(io streams, args []string) error {
		switch {
		case dir == "":
			return usageError("-o is missing: the directory to write")
		case len(args) == 0:
			return usageError("name a bundle, which fusebench plans export writes")
		case len(args) > 1:
			return usageError("unexpected %q", args[1])
		case name == "":
			name = filepath.Base(dir)
		}
		if !token.IsIdentifier(name) {
			return usageError("%q is not the name of a package: -pkg", name)
		}
		data, err := sniff.ReadFile(args[0])
		if err != nil {
			return err
		}
		g, err := readGenerated(name, data)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		files, err := g.files()
		if err != nil {
			return err
		}
		if err := writePackage(dir, files); err != nil {
			return err
		}
		g.tell(io, dir)
		return nil
	}
}

// generated is a package while it is generated.
type generated struct {
	name   string
	plans  int
	bundle []byte   // without plans of other versions
	left   []string // what was left out, and why
}

// readGenerated copies the entries of a bundle that this version can use.
func readGenerated(name string, data []byte) (*generated, error) {
	b, err := plancache.ReadBundle(data)
	if err != nil {
		return nil, err
	}
	g := &generated{name: name}
	var keep []plancache.Entry
	notes := 0
	for e, err := range b.All() {
		if err != nil {
			return nil, err
		}
		if e.Kind == kindPlan {
			scope, _ := plancache.SplitKey(e.Key)
			if why := fusion.Foreign(scope); why != "" {
				g.left = append(g.left, "plans: "+why)
				continue
			}
			g.plans++
		}
		if e.Kind == lookup.KindKernel {
			notes++
			continue
		}
		keep = append(keep, e)
	}
	if notes > 0 {
		g.left = append(g.left, fmt.Sprintf("%d notes of kernels, which nothing reads any more", notes))
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
	genPrefix = "z_millrace_"
	genBundle = genPrefix + "plans.bundle"
	genPlans  = genPrefix + "plans.go"
)

// files returns the package's files by name.
func (g *generated) files() (map[string][]byte, error) {
	text, err := genPlansGo(g)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{genBundle: g.bundle, genPlans: text}, nil
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
func (g *generated) tell(io streams, dir string) {
	fmt.Fprintf(io.out, "%s: package %s with %d plans\n", dir, g.name, g.plans)
	for _, why := range g.left {
		fmt.Fprintf(io.out, "left out: %s\n", why)
	}
}

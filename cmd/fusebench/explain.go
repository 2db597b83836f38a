package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/millrace-go/millrace"
)

func setupExplain(fs *flag.FlagSet) func(streams, []string) error {
	c := &config{shape: shape{32, 512, 2048}, dtype: dtype{millrace.Float32}, modes: list{fused}, wait: true}
	c.targetFlags(fs)
	fs.Var(&c.shape, "shape", "`sizes` of the tensor")
	fs.Var(&c.variants, "variants", "`variants` to explain (default: all)")
	return func(io streams, args []string) error {
		s, err := suiteNamed(args)
		if err != nil {
			return err
		}
		if len(c.variants) == 0 {
			c.variants = s.Variants()
		}
		if err := c.check(s.Variants()); err != nil {
			return err
		}
		devices, err := targets(c, io)
		if err != nil {
			return err
		}
		var buf bytes.Buffer
		for _, device := range devices {
			for _, mode := range c.modes {
				if err := explain(&buf, c, s, device, mode); err != nil {
					return fmt.Errorf("%s: %w", device, err)
				}
			}
		}
		return deliverBytes(io.out, buf.Bytes(), c.out)
	}
}

func suiteNamed(args []string) (Suite, error) {
	var names []string
	for _, s := range suites {
		if len(args) == 1 && s.Name() == args[0] {
			return s, nil
		}
		names = append(names, s.Name())
	}
	return nil, usageError("want one of %s, got %q", strings.Join(names, ", "), args)
}

func explain(w *bytes.Buffer, c *config, s Suite, device, mode string) error {
	host := newInput(c.shape, c.dtype)
	b, err := openBench(c, device, mode, host.upload)
	if err != nil {
		return err
	}
	for _, v := range c.variants {
		fmt.Fprintf(w, "# %s %s, %s, %s, shape %s, %s\n\n", s.Name(), v, device, mode, shapeText(c.shape), c.dtype.String())
		y := s.Program(v)(b.x)
		if err := y.Err(); err != nil {
			return errors.Join(err, b.close())
		}
		fmt.Fprintf(w, "%s\n", strings.TrimRight(y.Explain(), "\n"))
		fmt.Fprintln(w)
		y.Release()
	}
	return b.close()
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/millrace-go/millrace"
)

func setupExplain() ([]cli.Flag, action) {
	c := &config{dtype: dtype{millrace.Float32}, modes: list{fused}, wait: true}
	flags := append(c.targetFlags(),
		&cli.GenericFlag{Name: "shape", Value: &c.shape, Usage: "`sizes` (default: as the suite's command)"},
		&cli.GenericFlag{Name: "variants", Value: &c.variants, Usage: "`variants` to explain (default: all)"})
	return flags, func(io streams, args []string) error {
		s, err := suiteNamed(explained, args)
		if err != nil {
			return err
		}
		if err := c.check(); err != nil {
			return err
		}
		problems, err := c.problems(s)
		if err != nil {
			return err
		}
		devices, err := targets(c, io)
		if err != nil {
			return err
		}
		var buf bytes.Buffer
		for _, device := range devices {
			for _, mode := range c.modes {
				if err := explain(&buf, c, s, problems, device, mode); err != nil {
					return fmt.Errorf("%s: %w", device, err)
				}
			}
		}
		return deliverBytes(io.out, buf.Bytes(), c.out)
	}
}

// explained are all suites, chain and serve.
var explained = append(suites[:len(suites):len(suites)], chainSuite(20), serveSuite)

func explain(w *bytes.Buffer, c *config, s *Suite, problems map[string]*problem, device, mode string) error {
	b, err := openBench(c, device, mode)
	if err != nil {
		return err
	}
	for _, v := range c.variants {
		p := problems[v]
		fmt.Fprintf(w, "# %s %s, %s, %s, shape %s, %s\n\n", s.name, v, device, mode, shapeText(p.shape), c.dtype.String())
		xs, err := b.inputs(p)
		if err != nil {
			return errors.Join(err, b.close())
		}
		y := p.program(xs)
		if err := y.Err(); err != nil {
			return errors.Join(err, b.close())
		}
		fmt.Fprintf(w, "%s\n", strings.TrimRight(y.Explain(), "\n"))
		fmt.Fprintln(w)
		y.Release()
	}
	return b.close()
}

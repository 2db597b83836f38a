package main

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/millrace-go/millrace"
)

// serveSuite is a server's computation for one request: two layers with GELU between, with
// weights that all requests share.
var serveSuite = &Suite{
	name: "serve", about: "requests to a small network from many goroutines, and the waits of a reader", shape: shape{256, 512, 256}, sizes: serveSizes,
	variants: always("batch-1", "batch-8", "together-1", "together-8"), free: true,
	problem: func(variant string, s shape, as *arrays) (*problem, error) {
		_, batch, err := requestVariant(variant)
		if err != nil {
			return nil, err
		}
		if err := ranked(s, serveSizes); err != nil {
			return nil, err
		}
		if err := fitsMemory(shape{batch, s[0]}, shape{batch, s[1]}, shape{batch, s[2]}, s[:2], s[1:]); err != nil {
			return nil, err
		}
		return request(batch, 0, s, as), nil
	},
}

// requestVariant returns the parts of a variant's name: the way in which a request is computed, and
// its rows.
func requestVariant(variant string) (way string, batch int, err error) {
	way, rows, _ := strings.Cut(variant, "-")
	batch, err = strconv.Atoi(rows)
	if err != nil || batch < 1 || answers[way] == nil {
		return "", 0, usageError("-variants %q: want some of batch-1, batch-8, recorded-1, together-1 and the like", variant)
	}
	return way, batch, nil
}

const serveSizes = "features,hidden,results"

// request returns request number ask: its own input, and the shared weights.
func request(batch, ask int, s shape, as *arrays) *problem {
	p := &problem{shape: append(shape{batch}, s...), program: mlp, intermediate: batch * s[1]}
	p.inputs = []*array{as.normal(sized("x", ask), 1, batch, s[0])}
	for i, in := range s[:2] {
		p.inputs = append(p.inputs, as.weight(sized("w", i), in, in, s[i+1]), as.normal(sized("b", i), 0.5, s[i+1]))
		p.flops += 2 * float64(batch) * float64(in) * float64(s[i+1])
	}
	p.oracle = mlpOracle(p.inputs, 2, true)
	return p
}

// serve has the values of the command's own flags.
type serve struct {
	goroutines list // numbers
	counts     []int
	cancel     float64
	reader     bool
	slice      time.Duration
}

func setupServe() ([]cli.Flag, action) {
	c := &config{dtype: dtype{millrace.Float32}, modes: list{fused}}
	v := &serve{goroutines: list{"1", "2", "4", "8", "32"}}
	flags := slices.Concat(c.suiteFlags(serveSuite), c.targetFlags(), c.timingFlags(), []cli.Flag{
		&cli.GenericFlag{Name: "goroutines", Value: &v.goroutines, Usage: "`numbers` of goroutines, each with a stream"},
		&cli.FloatFlag{Name: "cancel", Value: 0.05, Destination: &v.cancel, Validator: share, Usage: "`share` of the requests whose context ends on the way"},
		&cli.BoolFlag{Name: "reader", Value: true, Destination: &v.reader, Usage: "time a reader beside a stream that enqueues large work without end, too"},
		&cli.DurationFlag{Name: "slice", Value: 250 * time.Millisecond, Destination: &v.slice, Validator: lasting(false), Usage: "`time` that each number of goroutines has in a round, at most"},
	})
	return flags, func(io streams, args []string) error {
		if err := c.checkTiming(args); err != nil {
			return err
		}
		if err := v.check(c); err != nil {
			return err
		}
		return timeServe(c, v, io)
	}
}

func share(x float64) error {
	if !(x >= 0 && x < 1) {
		return errors.New("want a share from 0 to below 1")
	}
	return nil
}

func (v *serve) check(c *config) error {
	if c.dtype.DType != millrace.Float32 {
		return usageError("serve runs float32 only")
	}
	for _, text := range v.goroutines {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 10000 {
			return usageError("-goroutines %q: want numbers from 1 to 10000", text)
		}
		v.counts = append(v.counts, n)
	}
	switch {
	case len(v.counts) == 0:
		return usageError("-goroutines is empty")
	case !slices.Contains(v.counts, 1):
		return usageError("-goroutines %s: 1 is missing, with which the others are compared", v.goroutines.String())
	}
	return nil
}

// timeServe runs the load on every target and writes the report.
func timeServe(c *config, v *serve, io streams) error {
	devices, err := targets(c, io)
	if err != nil {
		return err
	}
	offers, err := offersOf(c, newArrays(c.dtype))
	if err != nil {
		return err
	}
	report, err := c.report(io, len(devices)*len(c.modes), func(i int, share time.Duration, show *progress) ([]Row, error) {
		name := devices[i/len(c.modes)]
		rows, err := serveOn(c, v, offers, name, c.modes[i%len(c.modes)], share, show)
		return rows, on(name, err)
	})
	return cmp.Or(err, report.failed())
}

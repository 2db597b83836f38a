package main

import (
	"bytes"
	"flag"
	"fmt"
	"time"

	"github.com/millrace-go/millrace"
)

func setupPlansExport(fs *flag.FlagSet) func(streams, []string) error {
	var f millrace.PlanFilter
	fs.StringVar(&f.Device, "device", "", "`driver` that entries are for, such as cpu (default: all)")
	since := fs.Duration("since", 0, "only what was used in this `time` up to now, such as 24h (default: all)")
	out := fs.String("o", "", "`file` to write")
	return func(io streams, args []string) error {
		switch {
		case *out == "":
			return usageError("-o is missing: the file to write")
		case *since < 0:
			return usageError("-since %v is negative", *since)
		case *since > 0:
			f.Since = time.Now().Add(-*since)
		}
		dir, err := planPath(args)
		if err != nil {
			return err
		}
		f.Cache = dir
		var buf bytes.Buffer
		if err := millrace.ExportPlans(&buf, f); err != nil {
			return err
		}
		if err := deliverBytes(io.out, buf.Bytes(), *out); err != nil {
			return err
		}
		fmt.Fprintf(io.err, "%s: %d bytes\n", *out, buf.Len())
		return nil
	}
}

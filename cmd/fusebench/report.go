package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// writers are the output formats by their name in -format.
var writers = map[string]func(io.Writer, *Report) error{
	"table":    writeTable,
	"json":     writeJSON,
	"csv":      writeCSV,
	"bench":    writeBench,
	"markdown": writeMarkdown,
	"svg":      writeSVG,
	"html":     writeHTML,
}

func formats() []string {
	var names []string
	for name := range writers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// drawn are the formats of -picture by the ending of the file's name.
var drawn = map[string]func(io.Writer, *Report) error{".svg": writeSVG, ".html": writeHTML}

// deliver writes a report as -format, -o and -picture say. It writes a file completely or not at
// all.
func (c *config) deliver(io streams, r *Report) error {
	r.Machine.Note = c.note
	if err := deliver(io.out, r, c.format, c.out); err != nil || c.picture == "" {
		return err
	}
	var buf bytes.Buffer
	if err := drawn[filepath.Ext(c.picture)](&buf, r); err != nil {
		return fmt.Errorf("-picture: %w", err)
	}
	if err := os.WriteFile(c.picture, buf.Bytes(), 0o666); err != nil {
		return err
	}
	path, err := filepath.Abs(c.picture)
	if err != nil {
		path = c.picture
	}
	fmt.Fprintf(io.err, "a picture of this: %s\n", path)
	return nil
}

// deliver writes a report to the file out, or to stdout if out is empty.
func deliver(stdout io.Writer, r *Report, format, out string) error {
	var buf bytes.Buffer
	if err := writers[format](&buf, r); err != nil {
		return err
	}
	return deliverBytes(stdout, buf.Bytes(), out)
}

// failed returns the first error of the rows, or nil.
func (r *Report) failed() error {
	for _, row := range r.Rows {
		if row.Error != "" {
			return fmt.Errorf("%s, %s: %s", row.Device, row.Variant, row.Error)
		}
	}
	return nil
}

func deliverBytes(stdout io.Writer, data []byte, out string) error {
	if out != "" {
		return os.WriteFile(out, data, 0o666)
	}
	_, err := stdout.Write(data)
	return err
}

// appendNumber writes four significant digits, without an exponent for numbers of usual size.
func appendNumber(b []byte, n number) []byte {
	f := float64(n)
	s := strconv.FormatFloat(f, 'g', 5, 64)
	if strings.ContainsRune(s, 'e') && f < 1e15 && f > -1e15 && (f >= 1 || f <= -1) {
		s = strconv.FormatFloat(f, 'f', 0, 64)
	}
	return append(b, s...)
}

func shapeText(shape []int) string {
	parts := make([]string, len(shape))
	for i, d := range shape {
		parts[i] = fmt.Sprint(d)
	}
	return strings.Join(parts, ",")
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/millrace-go/millrace/fusion"
)

// A planRow describes one entry in a list.
type planRow struct {
	Name    string     `json:"name"`
	Kind    string     `json:"kind"`
	Device  string     `json:"device,omitempty"`
	Mode    string     `json:"mode,omitempty"`
	Plans   int        `json:"plans,omitempty"`   // records of the entry
	Ops     int        `json:"ops,omitempty"`     // of the last record's segment
	Kernels int        `json:"kernels,omitempty"` // of its plan
	Bytes   int64      `json:"bytes"`
	Used    *time.Time `json:"used,omitempty"`
	State   string     `json:"state"` // "ok", "foreign" or "damaged"
	Why     string     `json:"why,omitempty"`
}

// row returns the description of the entry.
func (r *remembered) row() planRow {
	v := r.judge()
	row := planRow{Name: r.Name, Kind: r.Kind, Bytes: r.Size, State: v.state, Why: v.why,
		Device: fusion.FingerprintField(r.scope(), "device"), Mode: fusion.FingerprintField(r.scope(), "mode")}
	if !r.Used.IsZero() {
		used := r.Used.UTC()
		row.Used = &used
	}
	if r.Kind != kindPlan || r.Err != nil {
		return row
	}
	records, err := r.records()
	if err != nil || len(records) == 0 {
		return row
	}
	last := &records[len(records)-1]
	row.Plans, row.Ops = len(records), operations(last.Segment)
	if p, err := fusion.ParsePlan(last.Plan); err == nil {
		row.Kernels = len(p.Steps)
	}
	return row
}

func planRows(all []remembered) []planRow {
	rows := make([]planRow, len(all))
	for i := range all {
		rows[i] = all[i].row()
	}
	return rows
}

// operations counts the operations of a segment's text: its lines that define a tensor and are no
// input.
func operations(segment string) int {
	n := 0
	for line := range strings.Lines(segment) {
		if _, is, ok := strings.Cut(line, " = "); ok && !strings.HasPrefix(is, "input ") {
			n++
		}
	}
	return n
}

func setupPlansList() ([]cli.Flag, action) {
	var kinds list
	var format string
	return []cli.Flag{kindsFlag(&kinds), formatFlag(&format)}, func(io streams, args []string) error {
		path, err := planPath(args)
		if err != nil {
			return err
		}
		all, err := readSource(path, kinds)
		if err != nil {
			return err
		}
		return planFormats[format](io.out, planRows(all))
	}
}

func planJSON(w io.Writer, rows []planRow) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(rows)
}

// planColumns are the columns of the table.
var planColumns = []struct {
	head string
	cell func(r *planRow) string
}{
	{"name", func(r *planRow) string { return r.Name }},
	{"device", func(r *planRow) string { return r.Device }},
	{"mode", func(r *planRow) string { return r.Mode }},
	{"plans", func(r *planRow) string { return orDash(r.Plans) }},
	{"ops", func(r *planRow) string { return orDash(r.Ops) }},
	{"kernels", func(r *planRow) string { return orDash(r.Kernels) }},
	{"bytes", func(r *planRow) string { return fmt.Sprint(r.Bytes) }},
	{"used", func(r *planRow) string {
		if r.Used == nil {
			return "-"
		}
		return r.Used.Local().Format("2006-01-02 15:04")
	}},
	{"state", func(r *planRow) string { return strings.TrimSuffix(r.State+": "+r.Why, ": ") }},
}

func orDash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func planTable(w io.Writer, rows []planRow) error {
	lines, bytes := make([][]string, 1+len(rows)), int64(0)
	for _, c := range planColumns {
		lines[0] = append(lines[0], c.head)
		for i := range rows {
			lines[1+i] = append(lines[1+i], strings.ReplaceAll(c.cell(&rows[i]), "\n", "; "))
		}
	}
	for i := range rows {
		bytes += rows[i].Bytes
	}
	if err := tabulate(w, 0, lines); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d entries, %d bytes\n", len(rows), bytes)
	return err
}

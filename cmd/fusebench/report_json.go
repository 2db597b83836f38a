package main

import (
	"encoding/json"
	"io"
	"slices"
)

func writeJSON(w io.Writer, r *Report) error {
	whole := &Report{Machine: r.Machine, Rows: slices.Clone(r.Rows)}
	for i := range whole.Rows {
		row := &whole.Rows[i]
		row.SamplesMS = nil // samples of a report that was read from a file
		for _, s := range row.seconds {
			row.SamplesMS = append(row.SamplesMS, number(s*1e3))
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(whole)
}

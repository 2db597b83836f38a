package main

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"slices"
)

// csvColumns are the names of Row's JSON fields, in the order of the contract.
var csvColumns = []string{
	"suite", "device", "variant", "mode", "tier", "shape", "dtype", "threads", "runs",
	"median_ms", "min_ms", "cold_ms",
	"copy_ms", "copy_kind", "copy_ratio", "copy_ratio_lo", "copy_ratio_hi",
	"kernels", "bytes_read", "bytes_written", "gb_per_s",
	"speedup_vs_unfused", "speedup_lo", "speedup_hi",
	"peak_bytes", "io_bytes", "intermediate_bytes",
	"gflops", "openblas_ms", "vs_openblas", "vs_openblas_lo", "vs_openblas_hi",
	"vs_default", "vs_default_lo", "vs_default_hi",
	"epilogue_cost", "epilogue_cost_lo", "epilogue_cost_hi",
	"matmul_share", "matmul_share_lo", "matmul_share_hi",
	"read_ms", "read_ratio", "read_ratio_lo", "read_ratio_hi",
	"peak_kind", "peak_share", "peak_share_lo", "peak_share_hi",
	"max_abs_err", "explorations_hot", "compiles_hot", "allocs_hot",
	"error",
}

// writeCSV writes the JSON fields as columns. There is one list of names, and one way to spell
// each value.
func writeCSV(w io.Writer, r *Report) error {
	out := csv.NewWriter(w)
	if err := out.Write(csvColumns); err != nil {
		return err
	}
	for _, row := range r.Rows {
		data, err := json.Marshal(row)
		if err != nil {
			return err
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(data, &fields); err != nil {
			return err
		}
		record := make([]string, len(csvColumns))
		for i, name := range csvColumns {
			record[i] = cell(fields[name])
		}
		record[slices.Index(csvColumns, "shape")] = shapeText(row.Shape)
		if err := out.Write(record); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func cell(raw json.RawMessage) string {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil || v == nil {
		return ""
	}
	if s, ok := v.(string); ok {
		return s
	}
	return string(raw)
}

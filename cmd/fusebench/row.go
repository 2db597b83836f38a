package main

import (
	"encoding/json"
	"math"
	"reflect"

	"github.com/millrace-go/millrace/internal/paired"
)

// A Report has the results of one call of fusebench. Its JSON names are a contract with programs
// that read it: fields are added, never renamed.
type Report struct {
	Machine Machine `json:"machine"`
	Rows    []Row   `json:"rows"`
}

// A Row is one variant in one mode on one device. Times are of hot runs unless they say cold.
// Counters are per run unless they say hot; a hot counter is the sum over all timed runs and
// should be 0.
type Row struct {
	Suite   string `json:"suite"`
	Device  string `json:"device"`
	Variant string `json:"variant"`
	Mode    string `json:"mode"` // fused, unfused, tuned, or go: plain Go loops; of PyTorch eager or compiled; for tiny the way it is run
	Tier    string `json:"tier"` // 0, 1, or gpu
	Shape   []int  `json:"shape"`
	DType   string `json:"dtype"`
	Threads int    `json:"threads"` // 0: as many as GOMAXPROCS
	Runs    int    `json:"runs"`

	MedianMS number `json:"median_ms"`
	MinMS    number `json:"min_ms"`
	ColdMS   number `json:"cold_ms"` // first run, including exploration and the compiles that it waits for

	CopyMS      number `json:"copy_ms"`    // plain copy of the same bytes, same rounds
	CopyKind    string `json:"copy_kind"`  // memcpy or kernel, whichever is faster here
	CopyRatio   number `json:"copy_ratio"` // median over the rounds of time/copy
	CopyRatioLo number `json:"copy_ratio_lo"`
	CopyRatioHi number `json:"copy_ratio_hi"` // 95 % interval

	Kernels      float64 `json:"kernels"`
	BytesRead    int64   `json:"bytes_read"`
	BytesWritten int64   `json:"bytes_written"`
	GBPerS       number  `json:"gb_per_s"`

	SpeedupVsUnfused number `json:"speedup_vs_unfused"` // median over the rounds of unfused/this
	SpeedupLo        number `json:"speedup_lo"`
	SpeedupHi        number `json:"speedup_hi"`

	PeakBytes         int64 `json:"peak_bytes"`         // most device memory live at once in a run: inputs, result and intermediates
	IOBytes           int64 `json:"io_bytes"`           // inputs and result
	IntermediateBytes int64 `json:"intermediate_bytes"` // largest intermediate tensor that the program writes as such

	GFLOPS       number `json:"gflops,omitzero"` // of contractions, by the median
	OpenBLASMS   number `json:"openblas_ms,omitzero"`
	VsOpenBLAS   number `json:"vs_openblas,omitzero"` // median over the rounds of OpenBLAS's time/this: 1 is as fast
	VsOpenBLASLo number `json:"vs_openblas_lo,omitzero"`
	VsOpenBLASHi number `json:"vs_openblas_hi,omitzero"`

	VsDefault   number `json:"vs_default,omitzero"` // of the tuned mode: median over the rounds of the default variants' time/this
	VsDefaultLo number `json:"vs_default_lo,omitzero"`
	VsDefaultHi number `json:"vs_default_hi,omitzero"`

	EpilogueCost   number `json:"epilogue_cost,omitzero"` // median over the rounds of this/product alone, less 1
	EpilogueCostLo number `json:"epilogue_cost_lo,omitzero"`
	EpilogueCostHi number `json:"epilogue_cost_hi,omitzero"`

	MatMulShare   number `json:"matmul_share,omitzero"` // median over the rounds of products alone/this
	MatMulShareLo number `json:"matmul_share_lo,omitzero"`
	MatMulShareHi number `json:"matmul_share_hi,omitzero"`

	ReadMS      number `json:"read_ms,omitzero"`    // plain read of the inputs, same rounds
	ReadRatio   number `json:"read_ratio,omitzero"` // median over the rounds of time/read
	ReadRatioLo number `json:"read_ratio_lo,omitzero"`
	ReadRatioHi number `json:"read_ratio_hi,omitzero"`

	PeakKind    string `json:"peak_kind,omitempty"` // the bound on the CPU: multiply-add, copy or read
	PeakShare   number `json:"peak_share,omitzero"` // median over the rounds of the time at that rate/this: 1 is the maximum
	PeakShareLo number `json:"peak_share_lo,omitzero"`
	PeakShareHi number `json:"peak_share_hi,omitzero"`

	MaxAbsErr       number `json:"max_abs_err"` // against float64
	ExplorationsHot int64  `json:"explorations_hot"`
	CompilesHot     int64  `json:"compiles_hot"`
	AllocsHot       int64  `json:"allocs_hot"` // device allocations that the pool could not serve

	Chain *ChainFigures `json:"chain,omitempty"`
	Serve *ServeFigures `json:"serve,omitempty"`
	Train *TrainFigures `json:"train,omitempty"`
	Tiny  *TinyFigures  `json:"tiny,omitempty"`
	Error string        `json:"error,omitempty"` // why there are no figures

	SamplesMS []number `json:"samples_ms,omitempty"` // every timed run; set where JSON is written or read

	seconds []float64 // every timed run, for the formats that list them
}

// ChainFigures are the figures of fusebench chain besides times.
type ChainFigures struct {
	Ops            int    `json:"ops"`
	RecordNSPerOp  number `json:"record_ns_per_op"` // recording and matching, without running
	AllocsPerOp    number `json:"allocs_per_op"`    // Go heap allocations that one more op adds to a step
	Alloc64NS      number `json:"alloc64_ns"`       // one 64-byte heap allocation, same rounds
	RecordPerAlloc number `json:"record_per_alloc64"`
	SpeedupVsGo    number `json:"speedup_vs_go"` // against plain Go loops into preallocated slices
	CompileMS      number `json:"compile_ms"`    // one compile of the chain's kernels, for which no run waited
}

// ServeFigures are the figures of fusebench serve besides times. Times are those of responses, or
// of a reader's waits.
type ServeFigures struct {
	Goroutines int    `json:"goroutines"`
	Answers    int64  `json:"answers"` // responses, or reads
	PerSecond  number `json:"per_s,omitzero"`
	VsOne      number `json:"vs_one,omitzero"` // median over the rounds of responses a second/those of one goroutine
	VsOneLo    number `json:"vs_one_lo,omitzero"`
	VsOneHi    number `json:"vs_one_hi,omitzero"`
	P99MS      number `json:"p99_ms"`
	WorstP99MS number `json:"worst_p99_ms,omitzero"` // of the goroutine with the largest one
	MaxMS      number `json:"max_ms"`

	GivenUp   int64  `json:"given_up"`             // requests whose context ended before the response
	LateP99MS number `json:"late_p99_ms,omitzero"` // from that end until the goroutine learned of it
	LateMaxMS number `json:"late_max_ms,omitzero"`

	OverSlice *int64 `json:"over_slice,omitempty"` // of a reader: waits of more than SliceMS
	SliceMS   number `json:"slice_ms,omitzero"`
}

// TrainFigures are the figures of fusebench train besides times. Times are those of whole steps:
// loss, derivatives and update.
type TrainFigures struct {
	How   string `json:"how"`            // eager, recorded or bound
	Ops   int64  `json:"ops"`            // recorded in a step
	Loss  number `json:"loss,omitzero"`  // after some steps
	Exact number `json:"exact,omitzero"` // the same loss in float64
}

// TinyFigures are the figures of fusebench tiny, for which median_ms is too large a unit.
type TinyFigures struct {
	NS       number `json:"ns"`
	VsGo     number `json:"vs_go"` // median over the rounds of this/a plain Go function
	VsGoLo   number `json:"vs_go_lo"`
	VsGoHi   number `json:"vs_go_hi"`
	BeyondNS number `json:"beyond_ns"`      // median over the rounds of this less 1.5 times the Go function
	Allocs   number `json:"allocs"`         // Go heap allocations of a run
	Calls    number `json:"calls,omitzero"` // of bound runs, how many were a single call
}

// A number is a float64; if it is absent, it is null in JSON and empty elsewhere.
type number float64

var absent = number(math.NaN())

func (n number) missing() bool { return math.IsNaN(float64(n)) }

// IsZero makes JSON omit a figure that a suite does not have, if the field says omitzero.
func (n number) IsZero() bool { return n.missing() }

// MarshalJSON writes null for a figure that was not measured, and for infinities, which JSON
// cannot express.
func (n number) MarshalJSON() ([]byte, error) {
	if n.missing() || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return appendNumber(nil, n), nil
}

// blank makes every figure of a struct absent; measurements fill them in.
func blank[F any](figures *F) *F {
	v := reflect.ValueOf(figures).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Type() == reflect.TypeFor[number]() {
			f.SetFloat(float64(absent))
		}
	}
	return figures
}

// emptyRow returns a row without figures.
func emptyRow() Row { return *blank(new(Row)) }

// newRow returns the empty row of a variant in one mode on one device.
func (c *config) newRow(suite, device, variant, mode string) Row {
	r := emptyRow()
	r.Suite, r.Device, r.Variant, r.Mode, r.DType, r.Threads = suite, device, variant, mode, c.dtype.String(), c.threads
	return r
}

// count fills the row's counters from those of so many hot runs on a device.
func (r *Row) count(device string, hot counts, runs int64) {
	r.Kernels = float64(hot.launches) / float64(runs)
	r.BytesRead, r.BytesWritten = hot.read/runs, hot.written/runs
	r.ExplorationsHot, r.CompilesHot, r.AllocsHot = hot.explorations, hot.compiles, hot.allocs
	r.Tier = tierName(device, hot)
}

// UnmarshalJSON leaves figures absent that the file does not have.
func (r *Row) UnmarshalJSON(data []byte) error {
	type fields Row
	f := fields(emptyRow())
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	*r = Row(f)
	return nil
}

// time fills the row's times from a contestant and the copy in the same rounds.
func (r *Row) time(c, copied *contestant) {
	r.Runs = len(c.times)
	r.seconds = c.times
	r.MedianMS = number(paired.Median(c.times) * 1e3)
	r.MinMS = number(paired.Minimum(c.times) * 1e3)
	if r.Runs > 0 {
		r.GBPerS = number(float64(r.BytesRead+r.BytesWritten) / paired.Median(c.times) / 1e9)
	}
	if copied == nil {
		return
	}
	own, plain := pairs(c, copied)
	est := paired.Ratio(own, plain)
	r.CopyMS, r.CopyKind = number(paired.Median(plain)*1e3), copied.name
	r.CopyRatio, r.CopyRatioLo, r.CopyRatioHi = number(est.Mid), number(est.Lo), number(est.Hi)
}

// compare fills the speed-up over the unfused run of the same variant.
func (r *Row) compare(c, unfused *contestant) {
	if unfused == nil {
		return
	}
	est := paired.Ratio(pairs(unfused, c))
	r.SpeedupVsUnfused, r.SpeedupLo, r.SpeedupHi = number(est.Mid), number(est.Lo), number(est.Hi)
}

// tuning fills the speed-up of a tuned row over the default variants, from pairs of their times.
func (r *Row) tuning(times [][2]float64) {
	if len(times) == 0 {
		return
	}
	var own, plain []float64
	for _, p := range times {
		own, plain = append(own, p[0]), append(plain, p[1])
	}
	e := paired.Ratio(plain, own)
	r.VsDefault, r.VsDefaultLo, r.VsDefaultHi = number(e.Mid), number(e.Lo), number(e.Hi)
}

// contract fills the figures that only rows of contractions have.
func (r *Row) contract(c *contestant, flops float64, blas *contestant) {
	if flops > 0 && len(c.times) > 0 {
		r.GFLOPS = number(flops / paired.Median(c.times) / 1e9)
	}
	if blas == nil {
		return
	}
	theirs, own := pairs(blas, c)
	e := paired.Ratio(theirs, own)
	r.OpenBLASMS = number(paired.Median(theirs) * 1e3)
	r.VsOpenBLAS, r.VsOpenBLASLo, r.VsOpenBLASHi = number(e.Mid), number(e.Lo), number(e.Hi)
}

// read fills the row's ratio to a plain read of its inputs.
func (r *Row) read(c, plain *contestant) {
	if plain == nil {
		return
	}
	own, read := pairs(c, plain)
	e := paired.Ratio(own, read)
	r.ReadMS = number(paired.Median(read) * 1e3)
	r.ReadRatio, r.ReadRatioLo, r.ReadRatioHi = number(e.Mid), number(e.Lo), number(e.Hi)
}

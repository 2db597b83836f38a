package main

import (
	"fmt"
	"math"
	goruntime "runtime"
	"runtime/debug"
	"time"

	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/internal/paired"
)

// A Report is what one call of fusebench found. Its JSON names are a contract
// with whoever plots them: fields are added, never renamed.
type Report struct {
	Machine Machine `json:"machine"`
	Rows    []Row   `json:"rows"`
}

// A Machine says where figures come from.
type Machine struct {
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"`
	OS       string `json:"os"`
	Go       string `json:"go"`
	Millrace string `json:"millrace"`
	Commit   string `json:"commit,omitempty"` // of the program's source, where the go command wrote it down
	Date     string `json:"date,omitempty"`   // when it was measured
}

// String is a line of it.
func (m Machine) String() string {
	s := fmt.Sprintf("%s, %d cores, %s, %s, millrace %s", m.CPU, m.Cores, m.OS, m.Go, m.Millrace)
	for _, more := range []string{m.Commit, m.Date} {
		if more != "" {
			s += ", " + more
		}
	}
	return s
}

// A Row is one variant in one mode on one device. Times are of hot runs unless
// they say cold; counters are per run unless they say hot, which is the sum
// over all timed runs and should be 0.
type Row struct {
	Suite   string `json:"suite"`
	Device  string `json:"device"`
	Variant string `json:"variant"`
	Mode    string `json:"mode"` // fused, unfused, tuned, or go: plain Go loops; of tiny how it is run
	Tier    string `json:"tier"` // 0, 1, or gpu
	Shape   []int  `json:"shape"`
	DType   string `json:"dtype"`
	Threads int    `json:"threads"` // 0: as many as GOMAXPROCS
	Runs    int    `json:"runs"`

	MedianMS number `json:"median_ms"`
	MinMS    number `json:"min_ms"`
	ColdMS   number `json:"cold_ms"` // first run: exploration and what compiling it waits for included

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

	PeakBytes         int64 `json:"peak_bytes"`         // most device memory live at once in a run: inputs, result, what lies between
	IOBytes           int64 `json:"io_bytes"`           // inputs and result
	IntermediateBytes int64 `json:"intermediate_bytes"` // largest tensor that the program writes down between them

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

	RoofKind    string `json:"roof_kind,omitempty"` // what bounds it on the CPU: multiply-add, copy or read
	RoofShare   number `json:"roof_share,omitzero"` // median over the rounds of the time at that rate/this: 1 is the most there is
	RoofShareLo number `json:"roof_share_lo,omitzero"`
	RoofShareHi number `json:"roof_share_hi,omitzero"`

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

// ChainFigures are what fusebench chain measures besides times.
type ChainFigures struct {
	Ops            int    `json:"ops"`
	RecordNSPerOp  number `json:"record_ns_per_op"` // recording and matching, without running
	AllocsPerOp    number `json:"allocs_per_op"`    // Go heap allocations that one more op adds to a step
	Alloc64NS      number `json:"alloc64_ns"`       // one 64-byte heap allocation, same rounds
	RecordPerAlloc number `json:"record_per_alloc64"`
	SpeedupVsGo    number `json:"speedup_vs_go"` // against plain Go loops into preallocated slices
	CompileMS      number `json:"compile_ms"`    // one compile of the chain's kernels, which nobody waited for
}

// ServeFigures are what fusebench serve measures besides times, which are of
// responses, or a reader's waits.
type ServeFigures struct {
	Goroutines int    `json:"goroutines"`
	Answers    int64  `json:"answers"` // responses, or reads
	PerSecond  number `json:"per_s,omitzero"`
	VsOne      number `json:"vs_one,omitzero"` // median over the rounds of responses a second/those of one goroutine
	VsOneLo    number `json:"vs_one_lo,omitzero"`
	VsOneHi    number `json:"vs_one_hi,omitzero"`
	P99MS      number `json:"p99_ms"`
	WorstP99MS number `json:"worst_p99_ms,omitzero"` // of the goroutine that has the largest
	MaxMS      number `json:"max_ms"`

	GivenUp   int64  `json:"given_up"`             // requests whose context ended before the response
	LateP99MS number `json:"late_p99_ms,omitzero"` // from that end until the goroutine knew of it
	LateMaxMS number `json:"late_max_ms,omitzero"`

	OverSlice *int64 `json:"over_slice,omitempty"` // of a reader: waits of more than SliceMS
	SliceMS   number `json:"slice_ms,omitzero"`
}

// TrainFigures are what fusebench train measures besides times, which are of whole steps:
// loss, derivatives, update.
type TrainFigures struct {
	How   string `json:"how"`            // eager, recorded or bound
	Ops   int64  `json:"ops"`            // recorded in a step
	Loss  number `json:"loss,omitzero"`  // after some steps
	Exact number `json:"exact,omitzero"` // the same in float64
}

// TinyFigures are what fusebench tiny measures: median_ms is too small a unit for it.
type TinyFigures struct {
	NS       number `json:"ns"`
	VsGo     number `json:"vs_go"` // median over the rounds of this/a plain Go function
	VsGoLo   number `json:"vs_go_lo"`
	VsGoHi   number `json:"vs_go_hi"`
	BeyondNS number `json:"beyond_ns"`      // median over the rounds of this less 1.5 times the Go function
	Allocs   number `json:"allocs"`         // Go heap allocations of a run
	Calls    number `json:"calls,omitzero"` // of bound runs, how many were a single call
}

// A number is a float64 whose absence is null in JSON and empty elsewhere.
type number float64

var absent = number(math.NaN())

func (n number) missing() bool { return math.IsNaN(float64(n)) }

// IsZero leaves figures that a suite does not have out of JSON, where the field
// says so.
func (n number) IsZero() bool { return n.missing() }

// MarshalJSON writes null for what was not measured and for infinities, which
// JSON has no spelling for.
func (n number) MarshalJSON() ([]byte, error) {
	if n.missing() || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return appendNumber(nil, n), nil
}

// emptyRow has every figure absent: figures are filled in as they are known.
func emptyRow() Row {
	return Row{
		MedianMS: absent, MinMS: absent, ColdMS: absent,
		CopyMS: absent, CopyRatio: absent, CopyRatioLo: absent, CopyRatioHi: absent,
		GBPerS: absent, SpeedupVsUnfused: absent, SpeedupLo: absent, SpeedupHi: absent,
		GFLOPS: absent, OpenBLASMS: absent, VsOpenBLAS: absent, VsOpenBLASLo: absent, VsOpenBLASHi: absent,
		VsDefault: absent, VsDefaultLo: absent, VsDefaultHi: absent,
		EpilogueCost: absent, EpilogueCostLo: absent, EpilogueCostHi: absent,
		MatMulShare: absent, MatMulShareLo: absent, MatMulShareHi: absent,
		ReadMS: absent, ReadRatio: absent, ReadRatioLo: absent, ReadRatioHi: absent,
		RoofShare: absent, RoofShareLo: absent, RoofShareHi: absent,
		MaxAbsErr: absent,
	}
}

// time fills the row's times from a contestant and the copy beside it.
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

// compare fills the row's speed-up over the unfused run of the same variant.
func (r *Row) compare(c, unfused *contestant) {
	if unfused == nil {
		return
	}
	est := paired.Ratio(pairs(unfused, c))
	r.SpeedupVsUnfused, r.SpeedupLo, r.SpeedupHi = number(est.Mid), number(est.Lo), number(est.Hi)
}

// tuning fills the speed-up of a tuned row over the default variants from pairs
// of their times.
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

// contract fills what a row of contractions has besides times.
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

// thisMachine describes the machine fusebench runs on.
func thisMachine() Machine {
	return Machine{
		CPU:      machine.Processor(),
		Cores:    goruntime.NumCPU(),
		OS:       goruntime.GOOS + "/" + goruntime.GOARCH,
		Go:       goruntime.Version(),
		Millrace: millraceVersion(),
		Commit:   commit(),
		Date:     time.Now().UTC().Format(time.DateOnly),
	}
}

func millraceVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// commit is the source's, with a plus where it was changed since.
func commit() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	of := map[string]string{}
	for _, s := range info.Settings {
		of[s.Key] = s.Value
	}
	c := of["vcs.revision"]
	if c = c[:min(len(c), 12)]; c != "" && of["vcs.modified"] == "true" {
		c += "+"
	}
	return c
}

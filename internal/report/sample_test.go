package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// sampleKernels are kernels of a small transformer: name, bytes and operations of a run, µs.
var sampleKernels = []struct {
	name         string
	bytes, flops float64
	micros       float64
	tier, choice string
}{
	{"contraction+add+gelu", 2.6e6, 2.7e8, 1450, "tier 1, machine code for avx2", "tile 6×16, panels of 256"},
	{"contraction", 1.1e6, 6.7e7, 410, "tier 1, machine code for avx2", "tile 4×24"},
	{"scores+mask+softmax+contraction", 8.9e5, 3.4e7, 520, "tier 1, machine code for avx2", ""},
	{"mul+add+mul+sqrt+div+sub", 4.2e6, 5.2e6, 310, "tier 1, machine code for avx2", "chunks of 4096"},
	{"max+sub+exp+sum+log", 8.3e5, 4.2e6, 140, "tier 1, C", ""},
	{"transpose", 5.2e5, 0, 95, "tier 0, interpreted", ""},
	{"add+layernorm", 5.2e5, 1.3e6, 31, "tier 1, machine code for avx2", "rows of 4"},
	{"layernorm", 2.6e5, 1.1e6, 26, "tier 1, machine code for avx2", ""},
	{"take+add", 2.6e5, 6.5e4, 18, "tier 1, machine code for avx2", ""},
	{"sum", 1.3e5, 3.2e4, 7, "tier 1, machine code for avx2", ""},
	{"cast", 6.5e4, 0, 4, "tier 1, machine code for avx2", ""},
	{"cumsum", 1e3, 256, 2, "tier 0, interpreted", ""},
}

// sample is the report of a program with two devices, the second of which has done little. It is
// the same every time.
func sample(launches int) *Report {
	opened := time.Date(2026, 11, 26, 9, 30, 12, 0, time.UTC)
	r := &Report{Every: 4, DevicesLeft: 3, Made: opened.Add(time.Minute), Program: "example.org/gpt v0.3.1", Go: "go1.26 linux/amd64", Machine: "AMD EPYC 7B13, 2 cores"}
	r.Devices = []Device{sampleDevice(launches, opened), {
		Name: "webgpu", Description: "llvmpipe (LLVM 15.0.6, 256 bits), Vulkan", Opened: opened.Add(3 * time.Second), Now: 5.7e7,
		Sampled:  "No launch is timed: the adapter has no timestamps.",
		Counters: []Counter{{"engine", "Ops", 12}, {"engine", "Segments", 0}},
	}}
	return r
}

func sampleDevice(launches int, opened time.Time) Device {
	rng := rand.New(rand.NewPCG(1, 2))
	d := Device{
		Name: "cpu", Description: "avx2, 2 threads", Opened: opened, Flops: 2.15e11, Bytes: 2.1e10,
		Sampled: "The first 16 launches of a kernel and every 64th after them are timed one by one.",
		Rows:    []string{"stream 1", "stream 2", "exploration", "compiler", "tuning", "cache", "host ops"},
	}
	for i, k := range sampleKernels {
		d.Kernels = append(d.Kernels, Kernel{
			Key: fmt.Sprintf("%016x", 0x9e3779b97f4a7c15*uint64(i+1)), Name: k.name, Bytes: k.bytes, Flops: k.flops, Tier: k.tier, Choice: k.choice,
			Ops: "# row\nin 0 : float32\nout 1 : float32\nscalar 0 : float32\n%0 = load 0 : float32\n%1 = scalar 0 : float32\n%2 = add %0 %1 : float32\n%3 = gelu %2 : float32\nstore 1 %3\n",
			Sources: []Source{
				{"tier 1, machine code for avx2", "cccbcb3 cccbcb3 cccccc3", strings.Repeat("       0  vbroadcastss ymm0,[rdi+0x190]\n       7  vmovups [rdi+0x1c0],ymm0\n  ; %2 = add %0 %1 : float32\n      9f  vaddps ymm8,ymm8,ymm1\n", 30)},
			},
		})
	}
	d.Kernels[0].Sources = append(d.Kernels[0].Sources, Source{"tier 1, C", "any layout", "static void kernel(const struct args *a) {\n\tfor (int64_t i = 0; i < a->n; i++)\n\t\ta->out[i] = a->x[i] < 0 ? 0 : a->x[i];\n}\n"})
	d.Plans = []Plan{
		{Segment: "%0 = input : float32(64,128,128)\n%1 = input : float32(64,128,128)\n%2 = dot %0 %1 axes=2 : float32(64,128)\n%3 = add %2 1 : float32(64,128)\n%4 = gelu %3 : float32(64,128)\n%5 = transpose %4\noutput %5\n",
			Text: "step 0 domain t0 axes 2 nodes 0\n  operand 0 t0\n", Mode: "best", Ops: 46, Runs: 180, Kernels: []int{8, 7, 1, 5, 2, 1, 6, 0, 1},
			Refused: []string{"kernels 0 and 1: rows would be looked up again for each of 128 columns (would save 32768 bytes)", "kernels 1 and 2: a contraction shares its kernel with nothing else that works on rows (would save 33024 bytes)", "kernels 6 and 7: their rows lie along different axes (would save 512 bytes)"},
			Tuning:  "contraction+add+gelu on 64,128,512: 14 ways timed, best tile 6×16 (1450 µs), device's own 1730 µs",
			Lines:   []string{"gpt.go:41", "gpt.go:42", "gpt.go:42", "block.go:18"}},
		{Segment: "%0 = input : float32(64,512)\noutput %0\n", Mode: "best", Ops: 21, Runs: 180, Kernels: []int{4, 9, 3, 11}, Refused: []string{"kernels 0 and 1: a result of the first is read as a whole by the second (would save 256 bytes)"}},
		{Segment: "%0 = input : int64(8)\noutput %0\n", Mode: "unfused", Ops: 2, Runs: 1, Kernels: []int{10, 11, -1}},
	}
	t := 2500.0
	span := func(row int, kind Kind, start, dur float64, ref int, note string) {
		d.Spans = append(d.Spans, Span{row, kind, start, dur, ref, note})
	}
	span(5, Cache, t, 60, -1, "miss: plan")
	span(2, Explore, t+300, 21800, 46, "9 kernels, best")
	for i := range sampleKernels {
		span(3, Compile, 9700+float64(i)*3100, 1900+500*rng.Float64(), i, "tier 1")
		span(5, Cache, 12000+float64(i)*3100, 700, -1, "written: code")
	}
	for i := range 14 {
		span(4, Tune, 30000+float64(i)*5200, 2800+900*rng.Float64(), 0, fmt.Sprintf("way %d of 14", i+1))
	}
	t = 25000
	pass := 0
	for launches > 0 {
		plan := d.Plans[pass%2]
		row := pass % 7 / 6
		span(row, Segment, t, 30+30*rng.Float64(), plan.Ops, "plan known")
		t += 70
		start := t
		var inside []Span
		for _, k := range plan.Kernels {
			dur := sampleKernels[k].micros * (0.9 + 0.3*rng.Float64())
			if pass < 3 {
				dur *= 5
			}
			inside = append(inside, Span{row, Launch, t, dur, k, ""})
			t += dur + 2
			kernel := &d.Kernels[k]
			kernel.Runs++
			kernel.Timed++
			kernel.Micros += dur
			launches--
		}
		d.Spans = append(d.Spans, inside...)
		span(row, Run, start, t-start, plan.Ops, "")
		t += 150 * rng.Float64()
		if pass%40 == 30 {
			t += 9000
		}
		live := int64(9e6 + 6e6*math.Sin(float64(pass)/5)*math.Sin(float64(pass)/5) + 2e6*rng.Float64())
		d.Memory = append(d.Memory, Point{start, live, 3e6}, Point{t, live - 4e6, 7e6})
		if live > d.Peak.Bytes {
			d.Peak = Peak{start, live, []Owner{
				{"data of the program", "gpt.go:28", 24, live * 45 / 100}, {"%4 float32[64,512] of plan 0", "block.go:18", 12, live * 28 / 100},
				{"%12 float32[64,64] of plan 0", "block.go:22", 4, live * 11 / 100}, {"scratch of kernels", "", 2, live * 6 / 100},
			}}
		}
		pass++
	}
	span(6, Host, t*0.6, 900, -1, "allreduce of 4194304 bytes, stream 1")
	span(0, Wait, t*0.6+200, 700, -1, "")
	span(0, Fault, t*0.7, 0, -1, "index 70 is out of range of 64 (gpt.go:41)")
	d.Now = t + 2000
	d.Launch = 1.8 // the cumsum takes about that long for any size
	d.SpansLeft, d.RunsLeft = 1234, 9
	d.Findings = []Finding{
		{"interpreted", "transpose", "gpt.go:30", 61}, {"recomputed", "mul %3 %4 : float32(64,128)", "gpt.go:77", 12},
		{"op by op", "cpu: out of memory", "", 1},
	}
	d.Counters = []Counter{
		{"engine", "Ops", int64(pass) * 33}, {"engine", "Segments", int64(pass)}, {"engine", "PlanHits", int64(pass) - 3}, {"engine", "Explorations", 3}, {"engine", "Tunings", 14},
		{"engine", "TuneNanos", 48e6}, {"engine", "Kernels", int64(pass) * 6}, {"engine", "Fallbacks", 0}, {"engine", "Evictions", 0}, {"engine", "LiveBytes", 9012224},
		{"driver", "Launches", int64(pass) * 6}, {"driver", "BytesRead", 39e9}, {"driver", "BytesWritten", 12e9}, {"driver", "CompileFails", 0}, {"driver", "Tier0", 61},
		{"driver", "Allocs", 1260}, {"driver", "PoolHits", 1238}, {"driver", "PeakBytes", 16e6}, {"driver", "CompileNanos", 312e6},
		{"cache on disk", "Hits", 3}, {"cache on disk", "Misses", 15}, {"cache on disk", "Damaged", 0}, {"cache on disk", "BytesWritten", 61000},
	}
	return d
}

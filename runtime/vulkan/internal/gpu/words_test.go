//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// Shaders with words that are push constants, and with 16 bytes more than these may have.
const (
	fewWords = `write 0 b u32;
words 1 1;
main invocations 64 {
	b[id.x] = b[id.x] * 3u + p[0].y;
}
`
	manyWords = `write 0 b u32;
words 1 17;
main invocations 64 {
	b[id.x] = b[id.x] * 3u + p[0].y + p[16].x;
}
`
)

// TestSettings: the environment's text is understood, and an unknown word is an error.
func TestSettings(t *testing.T) {
	for text, want := range map[string]settings{
		"": {}, "norobust": {unguarded: true},
		"fence, nopush": {fenced: true, buffered: true}, "apart": {apart: true}, "onequeue": {oneQueue: true}, "noskip": {skipless: true}, "emulated": {emulated: true},
	} {
		if got, err := parseSettings(text); got != want || err != nil {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	t.Setenv(settingsIn, "fences")
	if _, err := Open(""); err == nil || !strings.Contains(err.Error(), `"fences"`) || !strings.Contains(err.Error(), "nopush") {
		t.Errorf("%v", err)
	}
}

// TestWords runs random submissions and recordings with few and many words, new and old ones, and
// compares with a model.
func TestWords(t *testing.T) {
	for _, set := range []string{"", "nopush", "fence"} {
		t.Run(set, func(t *testing.T) {
			t.Setenv(settingsIn, set)
			d := open(t)
			for seed := range uint64(20) {
				testWords(t, d, rand.New(rand.NewPCG(seed, 7)))
			}
		})
	}
}

func testWords(t *testing.T, d *Device, r *rand.Rand) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	few, err := d.NewPipeline(fewWords, doubleBindings)
	must(err)
	many, err := d.NewPipeline(manyWords, doubleBindings)
	must(err)
	if want := map[bool]int{false: 16, true: 0}[d.buffered]; few.(*Pipeline).pushed != want || many.(*Pipeline).pushed != 0 {
		t.Fatalf("%d and %d bytes are pushed", few.(*Pipeline).pushed, many.(*Pipeline).pushed)
	}
	b, err := d.NewBuffer(256, gpurun.Storage)
	must(err)
	defer b.Release()
	must(d.Write(b, 0, 256, func(dst []byte, _ int64) { clear(dst) }))
	const size = 2048
	var params [2]gpurun.Buffer
	var contents [2][]byte
	write := func(i int) {
		for j := 0; j < size; j += 4 {
			binary.LittleEndian.PutUint32(contents[i][j:], r.Uint32())
		}
		must(d.Write(params[i], 0, size, func(dst []byte, at int64) { copy(dst, contents[i][at:]) }))
	}
	for i := range params {
		params[i], err = d.NewBuffer(size, gpurun.Uniform)
		must(err)
		defer params[i].Release()
		contents[i] = make([]byte, size)
		write(i)
	}
	value := uint32(0)
	// list makes dispatches, and a function that computes their results.
	list := func() (dispatches []gpurun.Dispatch, run func()) {
		var steps []func()
		for range 1 + r.IntN(4) {
			i, align := r.IntN(2), int(d.adapter.info.Limits.Align)
			at, words, pipe := r.IntN((size-272)/align+1)*align, int64(16), few
			if r.IntN(2) == 0 {
				words, pipe = 272, many
			}
			dispatches = append(dispatches, gpurun.Dispatch{
				Pipe: pipe, Bind: []gpurun.Range{{Buf: b, Size: 256}, {Buf: params[i], Off: int64(at), Size: words}}, Groups: [3]uint32{1, 1, 1},
			})
			steps = append(steps, func() {
				value = value*3 + binary.LittleEndian.Uint32(contents[i][at+4:])
				if words > 16 {
					value += binary.LittleEndian.Uint32(contents[i][at+256:])
				}
			})
		}
		return dispatches, func() {
			for _, s := range steps {
				s()
			}
		}
	}
	for step := range 30 {
		i := r.IntN(2)
		var fresh []byte
		switch r.IntN(4) {
		case 0:
			write(i)
		case 1: // new words at the beginning
			fresh = make([]byte, 4*(1+r.IntN(size/4)))
			for j := range fresh {
				fresh[j] = byte(r.Uint32())
			}
			copy(contents[i], fresh)
		}
		dispatches, run := list()
		must(d.Submit(dispatches, params[i], fresh))
		run()
		if r.IntN(3) == 0 {
			dispatches, run = list()
			w, err := d.Record(gpurun.Range{}, dispatches)
			must(err)
			for range 1 + r.IntN(3) {
				once, runOnce := list()
				must(d.Play([]gpurun.Work{{List: once}, {Rec: w}, {Rec: w}}))
				runOnce()
				run()
				run()
			}
			w.Release()
		}
		if r.IntN(3) > 0 {
			continue
		}
		var got []uint32
		must(d.Read(b, 0, 256, func(src []byte, _ int64) {
			for j := 0; j < len(src); j += 4 {
				got = append(got, binary.LittleEndian.Uint32(src[j:]))
			}
		}))
		if slices.Min(got) != value || slices.Max(got) != value {
			t.Fatalf("step %d: %v, want %d everywhere", step, got, value)
		}
	}
}

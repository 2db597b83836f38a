package compliance

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// The bits of every dtype as those of every other.
func TestBitcastAgainstGo(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	r := rand.New(rand.NewPCG(41, 42))
	var n tally
	for _, from := range all {
		for _, to := range all {
			if to == dtypes.Bool && from != dtypes.Bool {
				continue // the Go backend makes bools that are neither true nor false
			}
			dims := []int{3, max(1, to.Bits()/from.Bits())}
			t.Run(fmt.Sprint(from, "/", to), func(t *testing.T) {
				cast := func(f compute.Function, in []compute.Value) (compute.Value, error) { return f.Bitcast(in[0], to) }
				n.add(same(t, b, ref, []arg{{random(r, from, product(dims)), dims}}, cast))
				n.add(same(t, b, ref, []arg{{random(r, from, 15), []int{3, 5}}}, cast))
				n.add(same(t, b, ref, []arg{{random(r, from, 1), nil}}, cast))
			})
		}
	}
	n.check(t, 250, 50)
}

func TestBitcastToBool(t *testing.T) {
	b := open(t, "millrace:cpu")
	got, _, err := evaluate(b, []arg{{[]uint16{0, 1, 0x100, 0x203}, []int{4}}}, func(f compute.Function, in []compute.Value) (compute.Value, error) {
		return f.Bitcast(in[0], dtypes.Bool)
	})
	if want := []bool{false, false, true, false, false, true, true, true}; err != nil || !slices.Equal(got.([]bool), want) {
		t.Errorf("%v, want %v (%v)", got, want, err)
	}
}

// draw is random bits of a shape, and the state behind them.
func draw(t *testing.T, b compute.Backend, state []uint64, s shapes.Shape) (any, []uint64) {
	t.Helper()
	var results [2]any
	for i := range results {
		flat, _, err := evaluate(b, []arg{{state, []int{3}}}, func(f compute.Function, in []compute.Value) (compute.Value, error) {
			next, bits, err := f.RNGBitGenerator(in[0], s)
			return []compute.Value{bits, next}[i], err
		})
		if err != nil {
			t.Fatal(err)
		}
		results[i] = flat
	}
	return results[0], results[1].([]uint64)
}

// Random bits, and the state behind them, are those of the Go backend for a state,
// whatever the shape, the dtype and the device's options. Of the third number of a
// state it leaves what was in memory. Its bools are not all true or false.
func TestRandomBitsAgainstGo(t *testing.T) {
	ref := open(t, reference)
	states := [][]uint64{{0xfeedfacecafebeef, 1<<64 - 4, 3}, {0, 0, 0}, {1<<64 - 1, 1<<64 - 1, 7}, {42, 1 << 63, 1}}
	for _, config := range []string{"millrace:cpu", "millrace:cpu,threads=1,tier=0", "millrace:cpu,explore=wait"} {
		b := open(t, config)
		for i, dims := range [][]int{{}, {1}, {0}, {3, 0}, {7}, {8}, {9}, {2, 3, 4}, {1023}, {1024}, {1025}, {8191}, {3, 2731}, {100000}} {
			for _, dt := range all {
				state := slices.Clone(states[i%len(states)])
				for range 3 { // the state behind it is the next one
					s := shapes.Make(dt, dims...)
					got, after := draw(t, b, state, s)
					want, next := draw(t, ref, state, s)
					if !bytes.Equal(rawBytes(got), truths(dt, rawBytes(want))) {
						t.Fatalf("%s: %s of %x differs", config, s, state)
					}
					if !slices.Equal(after[:2], next[:2]) || after[2] != state[2] {
						t.Fatalf("%s: %s of %x leaves %x, want %x", config, s, state, after, next)
					}
					state = after
				}
			}
		}
	}
}

func rawBytes(flat any) []byte { return dtypes.UnsafeByteSliceFromAny(flat) }

// truths are bytes as bools where those are asked for.
func truths(dt dtypes.DType, list []byte) []byte {
	if dt != dtypes.Bool {
		return list
	}
	bools := make([]byte, len(list))
	for i, b := range list {
		bools[i] = min(b, 1)
	}
	return bools
}

// How often each bit is set, and how often each is where the one before it is,
// within five standard errors.
func TestRandomBitsAreEven(t *testing.T) {
	b := open(t, "millrace:cpu")
	const n = 1 << 16
	flat, _ := draw(t, b, []uint64{1, 2, 3}, shapes.Make(dtypes.Uint64, n))
	list := flat.([]uint64)
	for bit := range 64 {
		set, again := 0, 0
		for i, v := range list {
			set += int(v >> bit & 1)
			again += int((v ^ list[(i+1)%n]) >> bit & 1)
		}
		for _, count := range []int{set, again} {
			if d := count - n/2; d*d > 25*n/4 {
				t.Errorf("bit %d: %d and %d of %d", bit, set, again, n)
			}
		}
	}
}

func TestRandomBitsState(t *testing.T) {
	b := open(t, "millrace:cpu")
	for _, a := range []arg{{[]uint64{1, 2}, []int{2}}, {[]int64{1, 2, 3}, []int{3}}} {
		_, _, err := evaluate(b, []arg{a}, func(f compute.Function, in []compute.Value) (compute.Value, error) {
			_, bits, err := f.RNGBitGenerator(in[0], shapes.Make(dtypes.Uint32, 3))
			return bits, err
		})
		if err == nil {
			t.Errorf("a state of %v", a.flat)
		}
	}
}

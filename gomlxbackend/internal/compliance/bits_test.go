package compliance

import (
	"fmt"
	"math/rand/v2"
	"reflect"
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

// Random bits depend on the state and the element only: not on the shape, on how
// many are drawn at once, nor on the device's options.
func TestRandomBits(t *testing.T) {
	b := open(t, "millrace:cpu")
	state := []uint64{0xfeedfacecafebeef, 1<<64 - 4, 3}
	flat, after := draw(t, b, state, shapes.Make(dtypes.Uint64, 10))
	whole := flat.([]uint64)
	var parts []uint64
	next := state
	for _, dims := range [][]int{{2, 2}, {0}, {6}} {
		var part any
		part, next = draw(t, b, next, shapes.Make(dtypes.Uint64, dims...))
		parts = append(parts, part.([]uint64)...)
	}
	if !slices.Equal(parts, whole) || !slices.Equal(next, after) {
		t.Errorf("%x and %x, want %x and %x", parts, next, whole, after)
	}
	for i := range state {
		other := slices.Clone(state)
		other[i]++
		flat, _ := draw(t, b, other, shapes.Make(dtypes.Uint64, 10))
		if flat.([]uint64)[0] == whole[0] {
			t.Errorf("number %d of the state does not matter", i)
		}
	}
	for _, config := range []string{"millrace:cpu,threads=1,tier=0", "millrace:cpu,compile=wait,explore=wait"} {
		flat, next := draw(t, open(t, config), state, shapes.Make(dtypes.Uint64, 10))
		if !slices.Equal(flat.([]uint64), whole) || !slices.Equal(next, after) {
			t.Errorf("%s: %x and %x, want %x and %x", config, flat, next, whole, after)
		}
	}
	// Those of narrower dtypes are the low ones.
	for _, dt := range all {
		flat, _ := draw(t, b, state, shapes.Make(dt, 10))
		for i, w := range whole {
			var want any = w&1 == 1
			switch v := reflect.ValueOf(flat).Index(i); {
			case dt == dtypes.Bool:
				if v.Bool() != want {
					t.Errorf("%v: %d is %v, want %v", dt, i, v, want)
				}
			case dt.IsInt():
				if want := reflect.ValueOf(w).Convert(dt.GoType()); !v.Equal(want) {
					t.Errorf("%v: %d is %v, want %v", dt, i, v, want)
				}
			}
		}
	}
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

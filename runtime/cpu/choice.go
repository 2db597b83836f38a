package cpu

import "strconv"

// choice is a way to run a launch that differs from the device's own in some
// knobs: a runtime.Choice's code. All choices give the same bits.
type choice uint64

// knob is one thing that may be done in another way.
type knob uint8

const (
	knobThreads   knob = iota // how many share the launch
	knobTile                  // rows of a tile, as a power of two of the own ones; of a contraction its rows' bytes; of a chain its local memory
	knobRows                  // rows of a contraction's tile, likewise
	knobOrder                 // whether rows are columns
	knobTemps                 // whether what is dear is kept or computed again
	knobLook                  // whether the next tile is asked for
	knobSplit                 // whether threads share rows, phase by phase
	knobUnroll                // vectors of a step of compiled code
	knobBlock                 // elements of a block of tier 0, likewise
	knobTranspose             // whether operands are transposed
	numKnobs
)

// Values of knobs that switch something.
const (
	turnedOff = 0
	turnedOn  = 1
)

// tileOwn is the value of knobTile, knobRows and knobBlock for what the device does itself; one less is half of it.
const tileOwn = 4

// knobs says where in a choice each has its place, as its value plus 1, and what
// its values are called.
var knobs = [numKnobs]struct {
	name    string
	at, len uint
	value   func(v int64) string
	// code: another value needs other compiled code.
	code bool
}{
	knobThreads:   {"threads", 0, 9, decimal, false},
	knobTile:      {"tile", 11, 4, power, false},
	knobRows:      {"rows", 31, 4, power, false},
	knobOrder:     {"columns", 15, 2, onOff, true},
	knobTemps:     {"recompute", 17, 2, onOff, true},
	knobLook:      {"ahead", 19, 2, onOff, false},
	knobSplit:     {"split", 21, 2, onOff, true},
	knobBlock:     {"block", 27, 4, power, false},
	knobUnroll:    {"unroll", 23, 4, decimal, true},
	knobTranspose: {"transpose", 35, 2, onOff, true},
}

func decimal(v int64) string { return strconv.FormatInt(v, 10) }

func onOff(v int64) string {
	if v == turnedOff {
		return "off"
	}
	return "on"
}

// power spells a factor.
func power(v int64) string {
	if v < tileOwn {
		return "1/" + strconv.Itoa(1<<(tileOwn-v))
	}
	return strconv.Itoa(1 << (v - tileOwn))
}

// turn is the choice that does one thing in another way.
func turn(k knob, v int64) choice { return choice(v+1) << knobs[k].at }

// of is what a choice says of a knob, if it does.
func (c choice) of(k knob) (v int64, set bool) {
	n := int64(c >> knobs[k].at & (1<<knobs[k].len - 1))
	return n - 1, n > 0
}

// on says how a knob that switches something stands, own where it is left alone.
func (c choice) on(k knob, own bool) bool {
	if v, set := c.of(k); set {
		return v == turnedOn
	}
	return own
}

// scaled is a size under a knob that is a power of two.
func (c choice) scaled(k knob, own int64) int64 {
	v, set := c.of(k)
	switch {
	case !set:
		return own
	case v < tileOwn:
		return own >> (tileOwn - v)
	}
	return own << (v - tileOwn)
}

// power is the power of two of such a knob, 0 where it is left alone.
func (c choice) power(k knob) int64 {
	if v, set := c.of(k); set {
		return v - tileOwn
	}
	return 0
}

// with is a choice that also does what another one does, but for knobs that it
// turns itself.
func (c choice) with(more choice) choice {
	for k := range numKnobs {
		if v, set := more.of(k); set {
			if _, own := c.of(k); !own {
				c |= turn(k, v)
			}
		}
	}
	return c
}

// otherCode reports a choice that may need compiled code of its own.
func (c choice) otherCode() bool {
	for k := range numKnobs {
		if _, set := c.of(k); set && knobs[k].code {
			return true
		}
	}
	return false
}

// String is the choice's name.
func (c choice) String() string {
	s := ""
	for k := range numKnobs {
		if v, set := c.of(k); set {
			if s != "" {
				s += " "
			}
			s += knobs[k].name + "=" + knobs[k].value(v)
		}
	}
	if s == "" {
		return "default"
	}
	return s
}

package ir

import (
	"math"
	"math/big"
	"testing"
)

var halfTypes = []DType{Float16, BFloat16}

// The reference for all following tests: the values of the bits in order, and the nearest value for
// numbers between them.
func TestFloatBits(t *testing.T) {
	for _, dt := range halfTypes {
		f := dt.format()
		last := math.Inf(-1)
		for b := uint64(0); b < f.inf(); b++ {
			v := BitsFloat(dt, b)
			if v <= last {
				t.Fatalf("%v: %#x is %v, not above %v", dt, b, v, last)
			}
			if got := FloatBits(dt, v); got != b {
				t.Fatalf("%v: %v is %#x, want %#x", dt, v, got, b)
			}
			if got := FloatBits(dt, -v); got != b|1<<15 {
				t.Fatalf("%v: %v is %#x, want %#x", dt, -v, got, b|1<<15)
			}
			last = v
			next := BitsFloat(dt, b+1)
			if b+1 == f.inf() { // rounds as if the format continued
				next = 2*v - BitsFloat(dt, b-1)
			}
			middle, even := (v+next)/2, b+b&1
			for x, want := range map[float64]uint64{middle: even, math.Nextafter(middle, 0): b, math.Nextafter(middle, math.Inf(1)): b + 1} {
				if got := FloatBits(dt, x); got != want {
					t.Fatalf("%v: %v is %#x, want %#x", dt, x, got, want)
				}
			}
		}
		for b := f.inf() + 1; b < 1<<15; b++ {
			if v := BitsFloat(dt, b); v == v {
				t.Fatalf("%v: %#x is %v", dt, b, v)
			}
		}
	}
	for _, c := range []struct {
		dt   DType
		bits uint64
		v    float64
	}{{Float16, 0x3c00, 1}, {Float16, 0xc000, -2}, {Float16, 0x7bff, 65504}, {Float16, 1, 0x1p-24}, {Float16, 0x400, 0x1p-14},
		{BFloat16, 0x3f80, 1}, {BFloat16, 0x4049, 3.140625}, {BFloat16, 1, 0x1p-133}, {BFloat16, 0x7f80, math.Inf(1)}} {
		if got := BitsFloat(c.dt, c.bits); got != c.v {
			t.Errorf("%v %#x is %v, want %v", c.dt, c.bits, got, c.v)
		}
	}
}

// sameFloatBits compares bits; all NaNs are equal.
func sameFloatBits(dt DType, got, want uint64) bool { return SameValue(dt, got, want) }

// Every 16-bit float is converted up and back down.
func TestHalfUp(t *testing.T) {
	for _, dt := range halfTypes {
		up, down := Expansion(Cast, Float32, []DType{dt}), Expansion(Cast, dt, []DType{Float32})
		for b := range uint64(1 << 16) {
			want := FloatBits(Float32, BitsFloat(dt, b))
			got := EvalProg(up, []uint64{b})[0]
			if !sameFloatBits(Float32, got, want) {
				t.Fatalf("%v %#x up is %#x, want %#x", dt, b, got, want)
			}
			if back := EvalProg(down, []uint64{got})[0]; !sameFloatBits(dt, back, b) {
				t.Fatalf("%v %#x comes back as %#x", dt, b, back)
			}
		}
	}
}

// From float32 down: every pattern of the bits that decide, on both sides of every rounding.
func TestHalfDown(t *testing.T) {
	for _, dt := range halfTypes {
		down := Expansion(Cast, dt, []DType{Float32})
		step := uint64(1)
		if testing.Short() {
			step = 5
		}
		for hi := uint64(0); hi < 1<<16; hi += step {
			for _, lo := range []uint64{0, 1, 0xfff, 0x1000, 0x1001, 0x2000, 0x3000, 0x7fff, 0x8000, 0x8001, 0xf000, 0xffff} {
				b := hi<<16 | lo
				want := FloatBits(dt, BitsFloat(Float32, b))
				if got := EvalProg(down, []uint64{b})[0]; !sameFloatBits(dt, got, want) {
					t.Fatalf("float32 %#x to %v is %#x, want %#x", b, dt, got, want)
				}
			}
		}
	}
}

// exact is an element's value, unless it is NaN or infinite.
func exact(dt DType, bits uint64) *big.Float {
	switch {
	case dt.IsFloat():
		return new(big.Float).SetFloat64(BitsFloat(dt, bits))
	case dt == Bool:
		return new(big.Float).SetInt64(int64(bits))
	}
	return new(big.Float).SetInt(toBig(dt, bits))
}

// castWant is the meaning of a cast, in numbers of any size.
func castWant(to, from DType, bits uint64) uint64 {
	if from.IsFloat() {
		v := BitsFloat(from, bits)
		switch {
		case to.IsFloat():
			return FloatBits(to, v)
		case to == Bool:
			return boolBit(v != 0)
		case v != v:
			return 0
		}
		if math.IsInf(v, 1) {
			return maxInt(to)
		} else if math.IsInf(v, -1) {
			return uint64(minInt(to)) & widthMask(to)
		}
	}
	x := exact(from, bits)
	switch {
	case to == Bool:
		return boolBit(x.Sign() != 0)
	case to.IsFloat():
		x.SetPrec(uint(to.format().mantissa + 1)) // integers are not denormal
		v, _ := x.Float64()
		return FloatBits(to, v)
	}
	i, _ := x.Int(nil)
	if lo := big.NewInt(minInt(to)); i.Cmp(lo) < 0 {
		i = lo
	}
	if hi := new(big.Int).SetUint64(maxInt(to)); i.Cmp(hi) > 0 {
		i = hi
	}
	return wrap(to, i)
}

// castInputs are all elements of small types. For other types they are the ends, numbers around
// them, and numbers in the middle of two 16-bit floats.
func castInputs(dt DType) []uint64 {
	var in []uint64
	if dt.Bits() <= 16 {
		n := uint64(1) << dt.Bits()
		if dt == Bool {
			n = 2
		}
		for b := range n {
			in = append(in, b)
		}
		return in
	}
	for s := range uint64(dt.Bits()) {
		for _, b := range []uint64{1, 3, 0x101, 0x103, 0x801, 0x803, 0x1001, 0x1ffffff, 0x1010101, 0xff} {
			for d := range uint64(5) {
				b := (b<<s + d - 2) & widthMask(dt)
				in = append(in, b, -b&widthMask(dt))
			}
		}
	}
	if dt.IsFloat() {
		for _, h := range halfTypes {
			for b := range uint64(1 << 16) {
				c := FloatBits(dt, BitsFloat(h, b))
				in = append(in, c, (c+1)&widthMask(dt), (c-1)&widthMask(dt), c+1<<(dt.format().mantissa-h.format().mantissa-1))
			}
		}
		return in
	}
	for b := uint64(0); b < 1<<12; b++ {
		for s := 0; s < dt.Bits(); s += 4 {
			in = append(in, (b<<s+0x80)&widthMask(dt), (b<<s-1)&widthMask(dt), (b<<s+1<<s>>1)&widthMask(dt))
		}
	}
	return in
}

func TestCastEveryPair(t *testing.T) {
	for from := Bool; from < NumDTypes; from++ {
		in := castInputs(from)
		step := 1 // every element of small types, a part of the others' inputs
		if from.Bits() > 16 {
			step = 37
		} else if testing.Short() {
			step = 7
		}
		for to := Bool; to < NumDTypes; to++ {
			p := Expansion(Cast, to, []DType{from})
			for i := 0; i < len(in); i += step {
				b := in[i]
				want := castWant(to, from, b)
				if got := EvalProg(p, []uint64{b})[0]; !sameValue(to, got, want) {
					t.Errorf("cast of %v %#x to %v is %#x, want %#x", from, b, to, got, want)
					break
				}
			}
		}
	}
}

func sameValue(dt DType, a, b uint64) bool { return SameValue(dt, a, b) }

// Ops on 16-bit floats are those on float32, rounded.
func TestHalfOps(t *testing.T) {
	for op := Op(1); op < NumOps; op++ {
		info := op.Info()
		if info.Class != ClassElementwise || !info.In.Has(Float16) || op == Cast || op == Where {
			continue
		}
		for _, dt := range halfTypes {
			result, wide := dt, Float32
			if info.Out == OutBool {
				result, wide = Bool, Bool
			}
			args, up := make([]DType, info.Arity), make([]DType, info.Arity)
			for i := range args {
				args[i], up[i] = dt, Float32
			}
			p, q := Expansion(op, result, args), Expansion(op, wide, up)
			step := uint64(3)
			if len(q.Code) > 60 {
				step = 29
			}
			if testing.Short() { // run again with other flags, and under an emulator
				step = 8*step + 5
			}
			for b := uint64(0); b < 1<<16; b += step {
				in, at := make([]uint64, info.Arity), make([]uint64, info.Arity)
				for i := range in {
					in[i] = (b * uint64(1+2*i*i*1237)) & 0xffff
					at[i] = FloatBits(Float32, BitsFloat(dt, in[i]))
				}
				got, want := EvalProg(p, in)[0], EvalProg(q, at)[0]
				if result != Bool {
					want = FloatBits(dt, BitsFloat(Float32, want))
				}
				if !sameValue(result, got, want) {
					t.Fatalf("%v.%v of %#x is %#x, want %#x", op, dt, in, got, want)
				}
			}
		}
	}
}

// A 16-bit uniform number has the leading bits of the float32 one.
func TestHalfUniform(t *testing.T) {
	for _, dt := range halfTypes {
		for i := range uint64(5000) {
			got := BitsFloat(dt, EvalOp(Uniform, dt, []DType{Uint64}, []uint64{i, 0, 99}))
			f := BitsFloat(Float32, EvalOp(Uniform, Float32, []DType{Uint64}, []uint64{i, 0, 99}))
			units := math.Ldexp(1, dt.format().mantissa+1)
			if want := math.Floor(f*units) / units; got != want || got >= 1 {
				t.Fatalf("%v at %d is %v, want %v", dt, i, got, want)
			}
		}
	}
}

// Expansions on storage dtypes consist of primitives of other dtypes.
func TestWiden(t *testing.T) {
	for op := Op(1); op < NumOps; op++ {
		if c := op.Class(); c != ClassElementwise {
			continue
		}
		for _, s := range signatures(op) {
			p := Expansion(op, s.dt, s.args)
			for _, in := range p.Code {
				switch in.Op {
				case Param, Const, Where, Bitcast, Convert:
					continue
				}
				if in.DT.Storage() {
					t.Errorf("%v of %v to %v computes in %v: %v", op, s.args, s.dt, in.DT, in.Op)
				}
			}
		}
	}
	if Widen(Add, Float32, []DType{Float32, Float32}) != nil || Widen(Add, Int8, []DType{Int8, Int8}) == nil {
		t.Error("Widen: float32 needs none, int8 does")
	}
}

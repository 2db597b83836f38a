package ir

import "testing"

func TestHeld(t *testing.T) {
	for _, c := range []struct {
		dt, held   DType
		bits, want uint64
	}{
		{Bool, Bool, 1, 1}, {Uint8, Uint32, 0xff, 0xff}, {Int8, Int32, 0x80, 0xffffff80}, {Int8, Int32, 0x7f, 0x7f},
		{Int16, Int32, 0x8000, 0xffff8000}, {Uint16, Uint32, 0x8000, 0x8000}, {Float16, Uint32, 0xfc00, 0xfc00}, {BFloat16, Uint32, 0xff80, 0xff80},
		{Int32, Int32, 0x80000000, 0x80000000}, {Uint32, Uint32, 1 << 31, 1 << 31}, {Int64, Int64, 1 << 63, 1 << 63},
		{Uint64, Uint64, 1 << 63, 1 << 63}, {Float32, Float32, 0x80000000, 0x80000000}, {Float64, Float64, 1 << 63, 1 << 63},
	} {
		if c.dt.Held() != c.held || c.dt.HeldBits(c.bits) != c.want {
			t.Errorf("%v is held as %v, %#x as %#x; want %v, %#x", c.dt, c.dt.Held(), c.bits, c.dt.HeldBits(c.bits), c.held, c.want)
		}
	}
}

func TestIntOf(t *testing.T) {
	for dt := range NumDTypes {
		if dt.IsInt() && IntOf(dt.Size(), dt.IsSigned()) != dt {
			t.Errorf("IntOf(%d, %v) is not %v", dt.Size(), dt.IsSigned(), dt)
		}
		if dt.Size() > 0 && (dt.Unsigned().Size() != dt.Size() || dt.Signed().Size() != dt.Size() || dt.Unsigned().IsSigned() || !dt.Signed().IsSigned()) {
			t.Errorf("%v: %v and %v", dt, dt.Unsigned(), dt.Signed())
		}
	}
}

func TestLoadStore(t *testing.T) {
	for dt := Bool; dt < NumDTypes; dt++ {
		b, bits := make([]byte, 9), 0x8877665544332211&widthMask(dt)
		b[dt.Size()] = 99
		StoreBits(dt, b, bits)
		for i := range dt.Size() {
			if b[i] != byte(bits>>(8*i)) {
				t.Errorf("%v: %x", dt, b)
			}
		}
		if b[dt.Size()] != 99 || LoadBits(dt, b) != bits {
			t.Errorf("%v: %x is read as %#x", dt, b, LoadBits(dt, b))
		}
	}
}

func TestShortNamesDiffer(t *testing.T) {
	seen := map[string]DType{}
	for dt := Bool; dt < NumDTypes; dt++ {
		if s := dt.Short(); s == "" || seen[s] != Invalid {
			t.Errorf("%v has the short name %q of %v", dt, s, seen[s])
		}
		seen[dt.Short()] = dt
	}
}

package amd64

import "github.com/millrace-go/millrace/codegen/native"

// LoadPoints loads so many points of neighbours; still says that all have the same element.
func (c *machine) LoadPoints(d native.Dense, points int, still bool, mask native.Value) native.Value {
	it := native.Item{Size: d.N, D: c.Vec(d.N), Mem: d.M, InMem: true, Pre: d.Pre, Imm: native.NoImm}
	one, whole, some := vmovss, vmovups, vmaskmovps
	if d.Size == 8 {
		one, whole, some = vmovsd, vmovupd, vmaskmovpd
	}
	switch {
	case points == 1:
		it.O, it.Size = one, 16
	case still:
		it.InMem, it.Pre = false, nil
		it.Emit = func(r *native.Regs) {
			d.Pre()
			switch {
			case d.Size == 4:
				c.vector(vbroadcastss, d.N, args{reg: r.D, RM: native.InMem(d.M), imm: native.NoImm})
			case d.N > 16:
				c.vector(vbroadcastsd, d.N, args{reg: r.D, RM: native.InMem(d.M), imm: native.NoImm})
			default:
				c.vector(vmovsd, 16, args{reg: r.D, RM: native.InMem(d.M), imm: native.NoImm})
				c.vector(vpinsrq, 16, args{reg: r.D, v: r.D, RM: native.InMem(d.M), imm: 1})
			}
		}
	case mask == 0:
		it.O = whole
	case c.evex:
		it.O, it.K, it.Zero = whole, mask, true
	default:
		it.O, it.S[0] = some, mask
	}
	return c.Item(it)
}

// StorePoints stores so many points of neighbours.
func (c *machine) StorePoints(d native.Dense, v native.Value, points int, mask native.Value) {
	it := native.Item{Size: d.N, S: [3]native.Value{v}, Mem: d.M, InMem: true, Pre: d.Pre, Imm: native.NoImm}
	one, whole, some := vmovssTo, vmovupsTo, vmaskmovpsTo
	if d.Size == 8 {
		one, whole, some = vmovsdTo, vmovupdTo, vmaskmovpdTo
	}
	switch {
	case points == 1:
		it.O, it.Size = one, 16
	case mask == 0:
		it.O = whole
	case c.evex:
		it.O, it.K = whole, mask
	default:
		it.O, it.S[2] = some, mask
	}
	c.Item(it)
}

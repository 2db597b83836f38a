package ir

import (
	"math/rand/v2"
	"testing"
)

// TestRowsAgree compares the two forms of the oracle: an op on rows, several runs long, gives the
// same bits as on every element alone.
func TestRowsAgree(t *testing.T) {
	const n = 2*runLength + 3
	rng := rand.New(rand.NewPCG(5, 6))
	for op := OpInvalid + 1; op < NumOps; op++ {
		info := op.Info()
		if info.Class != ClassElementwise && info.Class != ClassCreate && !info.Prim || info.Outside {
			continue
		}
		for _, s := range signatures(op) {
			params := s.args
			if info.Indexed {
				params = append([]DType{Uint32, Uint32}, params...)
			}
			rows := make([][]uint64, len(params))
			for k, dt := range params {
				rows[k] = make([]uint64, n)
				for i := range rows[k] {
					rows[k][i] = anyBits(rng, dt)
				}
			}
			check := func(what string, row []uint64, one func(args []uint64) uint64) {
				args := make([]uint64, len(rows))
				for i := range row {
					for k := range rows {
						args[k] = rows[k][i]
					}
					if want := one(args); row[i] != want {
						t.Errorf("%s %v of %v to %v: element %d, of %x, is %#x in a row and %#x alone", what, op, s.args, s.dt, i, args, row[i], want)
						return
					}
				}
			}
			got := make([]uint64, n)
			if info.Class == ClassElementwise || info.Class == ClassCreate {
				EvalOps(op, s.dt, s.args, rows, got)
				check("op", got, func(args []uint64) uint64 { return EvalOp(op, s.dt, s.args, args) })
			}
			if in := (Instr{Op: op, DT: s.dt}); info.Prim && op != Lookup && op != Rare && IsPrim(op, s.dt, leading(s.args)) {
				EvalPrims(in, s.args, rows, got)
				check("primitive", got, func(args []uint64) uint64 { return EvalPrim(in, s.args, args) })
			}
		}
	}
}

// anyBits are those of a number of ordinary size half of the time.
func anyBits(rng *rand.Rand, dt DType) uint64 {
	switch {
	case dt.IsFloat() && rng.IntN(2) == 0:
		return FloatBits(dt, rng.NormFloat64()*10)
	case dt.IsInt() && rng.IntN(2) == 0:
		return uint64(rng.IntN(7)-3) & widthMask(dt)
	}
	return rng.Uint64() & widthMask(dt)
}

// TestRowsOfFewRare runs a sub-program for some elements of a row, for all of them and for none.
func TestRowsOfFewRare(t *testing.T) {
	for _, huge := range []int{0, 1, 3, 300} {
		row, got := make([]uint64, 300), make([]uint64, 300)
		for i := range row {
			if row[i] = f32bits(float32(i)); i%100 < (huge+2)/3 || huge == 300 {
				row[i] = f32bits(float32(1e20 + 1e15*float64(i)))
			}
		}
		EvalOps(Sin, Float32, []DType{Float32}, [][]uint64{row}, got)
		for i := range row {
			if want := EvalOp(Sin, Float32, []DType{Float32}, row[i:i+1]); got[i] != want {
				t.Errorf("%d are huge: the sine of %v is %v in a row and %v alone", huge, f32(row[i]), f32(got[i]), f32(want))
			}
		}
	}
}

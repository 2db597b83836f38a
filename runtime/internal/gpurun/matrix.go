package gpurun

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// A contraction of 16-bit floats goes by the adapter's matrix units, if it has some, and one of
// float32 too if Config.Precision asks for it. Drivers are said
// to have units that are wrong. So before a tile is used for the first time, a product of random
// numbers is computed by it and compared with what the host computes. If they differ, or if the driver
// rejects such a shader, the device uses its units no more.

// units are the matrix units of a device.
type units struct {
	shapes []shader.Matrix // the best one of each dtype of operands

	mu      sync.Mutex // held during a comparison: others need its outcome
	trusted map[shader.Tile]bool
	refused bool
}

// bestShapes are the shapes with the most products in one operation, for each dtype.
func bestShapes(list []shader.Matrix) (best []shader.Matrix) {
	for _, of := range [...]ir.DType{ir.Float16, ir.BFloat16} {
		var most shader.Matrix
		for _, x := range list {
			if x.Of == of && x.M*x.N*x.K > most.M*most.N*most.K {
				most = x
			}
		}
		if most.Of == of {
			best = append(best, most)
		}
	}
	return best
}

// partsOf are the bfloat16 parts of a float32 operand.
var partsOf = [...]int{runtime.PrecisionBF16x6: 3, runtime.PrecisionBF16x3: 2}

// inParts adds the shape that multiplies float32 numbers by their parts, that of bfloat16. Units that
// are emulated may be of float16 alone. They serve tests, which use numbers whose parts are float16
// numbers too. The result says whether there is such a shape.
func (u *units) inParts(mode runtime.PrecisionMode, emulated bool) bool {
	for i := len(u.shapes) - 1; i >= 0; i-- { // bfloat16 is the last
		if x := u.shapes[i]; x.Of == ir.BFloat16 || emulated {
			x.Parts = partsOf[mode]
			u.shapes = append(u.shapes, x)
			return true
		}
	}
	return false
}

// of is the dtype of a prepared kernel's operands for which there is a shape, or Invalid.
func (u *units) of(k *codegen.Kernel) ir.DType {
	if len(u.shapes) == 0 {
		return ir.Invalid
	}
	if of, _ := shader.Halves(k); of != ir.Invalid || !shader.IsDot(k, ir.Float32) {
		return of
	}
	return ir.Float32
}

// shape is that for a dtype of operands, or zero.
func (u *units) shape(of ir.DType) shader.Matrix {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, x := range u.shapes {
		if x.Operands() == of && !u.refused {
			return x
		}
	}
	return shader.Matrix{}
}

// refuseUnits handles units that are wrong, or that the driver's compiler rejects: they are used no more.
func (d *Runner) refuseUnits(err error) {
	d.units.mu.Lock()
	was := d.units.refused
	d.units.refused = true
	d.units.mu.Unlock()
	d.stats.fallbacks.Add(1)
	if !was && d.cfg.OnError != nil {
		d.cfg.OnError(d.errorf("products no longer use matrix units: %w", err))
	}
}

// kindUnits is the kind of cache entries that say that products by a tile are right on a driver.
const kindUnits = "units"

// trust reports whether products by a tile's matrices are right, which the first call for a tile
// finds out, unless an earlier process did.
func (d *Runner) trust(t shader.Tile) (bool, error) {
	t.MDims, t.NDims, t.WideA, t.WideB = 1, 1, false, false // do not matter
	known, wrong, err := d.units.known(d, t)
	if wrong != nil {
		d.refuseUnits(wrong)
	}
	return known, err
}

func (u *units) known(d *Runner, t shader.Tile) (known bool, wrong, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.refused || u.trusted[t] {
		return !u.refused, nil, nil
	}
	key, cache := fmt.Sprintf("%s\n%+v", d.caps.Scope(), t), d.cfg.Cache
	if cache != nil {
		_, u.trusted[t] = peek(cache, kindUnits, key)
	}
	if u.trusted[t] {
		return true, nil, nil
	}
	if wrong, err = d.compareProduct(t); wrong != nil || err != nil {
		return false, wrong, err
	}
	u.trusted[t] = true
	if cache != nil {
		_ = cache.Put(kindUnits, key, []byte("right")) // the cache counts failures
	}
	return true, nil, nil
}

// productError is the largest error of a sum of products, as a part of the sum of their magnitudes, by
// the number of parts: far above that of float32, far below that of 16-bit sums. Two parts lack
// up to 2^-14; of three, none may be missing.
var productError = [...]float64{0: 0x1p-16, 2: 0x1p-14, 3: 0x1p-19}

// compareProduct multiplies matrices of random numbers by a tile. wrong says that the results are
// not the host's, or that the driver does not compile the shader; err is another failure.
func (d *Runner) compareProduct(t shader.Tile) (wrong, err error) {
	of := t.Matrix.Operands()
	text := "in 0 : %[1]v\nin 1 : %[1]v\nout 2 : float32 row\n%%0 = load 0 : %[1]v\n%%1 = load 1 : %[1]v\n" +
		"%%2 = cast %%0 : float32\n%%3 = cast %%1 : float32\n%%4 = dot %%2 %%3 : float32\nstore 2 %%4"
	if of == ir.Float32 {
		text = "in 0 : %[1]v\nin 1 : %[1]v\nout 2 : %[1]v row\n%%0 = load 0 : %[1]v\n%%1 = load 1 : %[1]v\n%%2 = dot %%0 %%1 : %[1]v\nstore 2 %%2"
	}
	k, err := codegen.Parse(fmt.Sprintf(text, of))
	if err != nil {
		return nil, err
	}
	p, err := d.build(k)
	if err != nil {
		return nil, err
	}
	defer d.Forget(p)
	p.tile = &t
	// More than one tile along m and n, and a stretch of k that is not full.
	m, n, steps := int64(t.M+5), int64(t.N+3), int64(2*t.K+1)
	l := runtime.Launch{Prog: p, Rank: 3, Kept: 2, Args: make([]runtime.Access, 3)}
	l.Dims[0], l.Dims[1], l.Dims[2] = m, n, steps
	l.Args[0].Stride = [runtime.MaxRank]int64{steps, 0, 1}
	if !t.AlongA {
		l.Args[0].Stride = [runtime.MaxRank]int64{1, 0, m}
	}
	l.Args[1].Stride = [runtime.MaxRank]int64{0, steps, 1}
	if !t.AlongB {
		l.Args[1].Stride = [runtime.MaxRank]int64{0, 1, n}
	}
	l.Args[2].Stride = [runtime.MaxRank]int64{n, 1}
	rng := rand.New(rand.NewPCG(1, 2))
	var values [2][]float64
	for i, count := range []int64{m * steps, n * steps, m * n} {
		dt := k.Operands[i].DT
		b, err := d.Alloc(count * int64(d.caps.ElemSize[dt]))
		if err != nil {
			return nil, err
		}
		defer d.Free(b)
		if l.Args[i].Buf = b; i == len(values) {
			break
		}
		data := make([]byte, 0, count*4)
		for range count {
			bits := ir.FloatBits(of, rng.Float64()*4-2)
			values[i] = append(values[i], ir.BitsFloat(of, bits))
			data = binary.LittleEndian.AppendUint32(data, uint32(bits))[:len(data)+of.Size()]
		}
		if err := d.Write(b, dt, 0, data); err != nil {
			return nil, err
		}
	}
	if err := d.dispatchAll([]runtime.Launch{l}, true); err != nil {
		if isSource(err) {
			return err, nil
		}
		return nil, err
	}
	got := make([]byte, m*n*4)
	if err := d.Read(got, ir.Float32, l.Args[2].Buf, 0); err != nil {
		return nil, err
	}
	a, b := &l.Args[0].Stride, &l.Args[1].Stride
	for i := range m {
		for j := range n {
			sum, size := 0.0, 0.0
			for s := range steps {
				x := values[0][i*a[0]+s*a[2]] * values[1][j*b[1]+s*b[2]]
				sum, size = sum+x, size+math.Abs(x)
			}
			y := float64(math.Float32frombits(binary.LittleEndian.Uint32(got[(i*n+j)*4:])))
			if !(math.Abs(y-sum) <= productError[t.Matrix.Parts]*size) {
				return fmt.Errorf("result (%d, %d) of %d products of %v is %v, the host computes %v", i, j, steps, of, y, sum), nil
			}
		}
	}
	return nil, nil
}

// Tiles by matrices, the largest first; operands in parts take more of a workgroup's memory. A subgroup computes RowsPer by ColsPer results. A smaller
// tile is used where a larger one gives fewer than busyTiles workgroups, and where the device's
// limits want it. A software adapter takes the first one that it allows.
var (
	unitTiles = []shader.Tile{
		{M: 128, N: 128, K: 32, RowsPer: 64, ColsPer: 32},
		{M: 64, N: 64, K: 32, RowsPer: 32, ColsPer: 32},
		{M: 32, N: 32, K: 32, RowsPer: 16, ColsPer: 16},
	}
	partTiles = []shader.Tile{
		{M: 128, N: 128, K: 16, RowsPer: 64, ColsPer: 32},
		{M: 128, N: 64, K: 16, RowsPer: 32, ColsPer: 32},
		unitTiles[1], unitTiles[2],
	}
	softTiles = []shader.Tile{{M: 32, N: 32, K: 32, RowsPer: 16, ColsPer: 16, Looped: true}}
	// A software device's compiler takes seconds for tens of products of matrices.
	softPartTiles = []shader.Tile{{M: 32, N: 32, K: 16, RowsPer: 16, ColsPer: 8, Looped: true}, softTiles[0]}
)

const busyTiles = 128

// unitTile is the tile by the piece's matrices instead of another one; false if there is none.
func (p *piece) unitTile(instead shader.Tile, batch, m, n int64) (shader.Tile, bool) {
	if p.matrix == (shader.Matrix{}) {
		return instead, false
	}
	list := unitTiles
	switch {
	case p.software && p.matrix.Parts > 0:
		list = softPartTiles
	case p.software:
		list = softTiles
	case p.matrix.Parts > 0:
		list = partTiles
	}
	best, found := instead, false
	for _, t := range list {
		t = unitsOf(t, &instead, p.matrix)
		if !p.allows(&t) {
			continue
		}
		best, found = t, true
		if p.software || batch*(m/int64(t.M))*(n/int64(t.N)) >= busyTiles {
			break
		}
	}
	return best, found
}

// unitsOf is a tile with the operands' layouts of another one.
func unitsOf(t shader.Tile, layout *shader.Tile, x shader.Matrix) shader.Tile {
	t.MDims, t.NDims, t.AlongA, t.AlongB, t.Matrix = layout.MDims, layout.NDims, layout.AlongA, layout.AlongB, x
	t.WideA, t.WideB = layout.WideA, layout.WideB
	return t
}

// allows reports whether a tile with matrices is within the device's limits.
func (p *piece) allows(t *shader.Tile) bool {
	return t.Fits() && t.Group() <= p.groupSize && int64(t.Memory()) <= p.workgroup
}

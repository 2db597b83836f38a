package native

import (
	"fmt"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// The code of contractions, for one kind of element: tiles of results that stay in
// registers while the chains run, and what brings operands into the order in which
// tiles read them. What a contraction is, and in which order it adds, is in
// docs/numerics/order.md; how it is cut into tiles is for runtime/cpu.

// Dot is the code for one kind of element. Offsets into Code are where functions
// begin; each is called with a frame, and -1 where there is none. Who has functions of
// other origin fills one in with what stands for them in place of offsets.
type Dot struct {
	Code    []byte
	Listing string // where it was asked for

	Size  int // bytes of an element
	Lanes int // of a vector
	Rows  int // most rows of a tile that is two vectors wide

	AlongStep int // see AlongFrame

	Tiles     [][]int // by rows, by vectors: see Tile
	Wides     []int   // by rows: see Wide
	Transpose int     // see TransposeFrame
	Panels    int     // see PanelsFrame
	Load      int     // see WalkFrame
	Store     int     // see WalkFrame
	Alongs    []int   // by rows: see Along
	Dots      int     // see DotsFrame
	Differs   int     // see DiffersFrame
	Beyond    int     // see BeyondFrame
}

// Tile is where the function for so many rows and vectors of columns begins: any rows
// up to Rows with one or two vectors, and Wide ones of few rows.
func (d *Dot) Tile(rows, vecs int) int { return d.Tiles[rows][vecs] }

// Wide is how many vectors of columns so few rows want: with less, each step of k
// would wait for the one before.
func (d *Dot) Wide(rows int) int {
	if rows < len(d.Wides) {
		return d.Wides[rows]
	}
	return 2
}

// What a tile does before and behind its steps of k.
const (
	TileFirst = 1 // the results are +0 so far and not read
	TileOpen  = 2 // the chains begin here; else they go on from Acc
	TileClose = 4 // the chains end here and are added to the results; else they go to Acc
)

// TileFrame is what a tile is called with: Panels times, one behind the other, rows of
// X times vectors of columns of Y. All distances are in bytes.
type TileFrame struct {
	X, Y, C, Acc unsafe.Pointer
	LdX          int64 // from row to row of X; k lies along rows
	LdY          int64 // from one step of k to the next in Y
	LdC, LdAcc   int64
	StepY, StepC int64 // from panel to panel; StepC in Acc too
	K            int64
	Panels       int64
	Tail         int64 // columns of the last vector of the last panel that there are in C
	Flags        int64
	// Near is the distance from C to what is asked for while results are computed, as it
	// will be read with them, where LdNear is not 0.
	Near, LdNear int64
}

// AlongFrame is what is called for columns of y that lie along k: a tile of one vector
// of them, Y, LdY, StepY, StepC and Panels of which do not count. K is a multiple of
// AlongStep.
type AlongFrame struct {
	TileFrame
	Columns [16]unsafe.Pointer // as many as a vector has lanes, of which several may be the same
}

// Along is where the function for so many rows begins, for any up to AlongRows.
func (d *Dot) Along(rows int) int { return d.Alongs[rows] }

// AlongRows is the most rows that there is such a function for, or 0.
func (d *Dot) AlongRows() int { return max(len(d.Alongs)-1, 0) }

// dotKind is a kind of element.
type dotKind struct {
	size                               int
	fma, add, mul                      op // fma, or mul and add
	byLane                             op // of arm64: fma, or mul and add, with a lane of a vector
	get, put, spread, getPart, putPart op
}

var (
	dotF32 = &dotKind{4, vfmadd231ps, vaddps, opNone, opNone, vmovups, vmovupsTo, vbroadcastss, vmaskmovps, vmaskmovpsTo}
	dotF64 = &dotKind{8, vfmadd231pd, vaddpd, opNone, opNone, vmovupd, vmovupdTo, vbroadcastsd, vmaskmovpd, vmaskmovpdTo}
	dotI32 = &dotKind{4, opNone, vpaddd, vpmulld, opNone, vmovups, vmovupsTo, vbroadcastss, vmaskmovps, vmaskmovpsTo}
	dotI64 = &dotKind{8, opNone, vpaddq, vpmullq, opNone, vmovupd, vmovupdTo, vbroadcastsd, vmaskmovpd, vmaskmovpdTo}
)

// dotKinds are the elements that there are tiles for. Sums and products wrap, so that
// signs do not matter, and narrower integers are computed in wider ones.
var dotKinds = map[ir.DType]*dotKind{
	ir.Float32: dotF32, ir.Float64: dotF64,
	ir.Int32: dotI32, ir.Uint32: dotI32, ir.Int64: dotI64, ir.Uint64: dotI64,
}

// NewDot makes the code for contractions of elements of a dtype.
func NewDot(isa *ISA, dt ir.DType, listed bool) (*Dot, error) {
	kind := dotKinds[dt]
	if isa.A64 {
		kind = neonDots[dt]
	}
	if kind == nil {
		return nil, fmt.Errorf("codegen/native: no contractions of %v for %s", dt, isa.Name)
	}
	a := &asm{isa: isa}
	if listed {
		a.lines = &listing{}
	}
	d := &Dot{Size: kind.size, Lanes: isa.Bytes / kind.size}
	g := &dotGen{asm: a, dotKind: kind, d: d, pairs: kind.mul == vpmullq && !isa.EVEX}
	if !isa.EVEX && !isa.A64 {
		g.masks = a.data(tailMasks(d.Lanes, d.Size))
	}
	g.tiles()
	g.transposes()
	g.walks()
	g.alongs()
	g.dots()
	g.scans()
	code, err := a.finish()
	if err != nil {
		return nil, err
	}
	d.Code = code
	if listed {
		d.Listing = a.lines.String()
	}
	return d, nil
}

// dotGen writes it.
type dotGen struct {
	*asm
	*dotKind
	d     *Dot
	pairs bool // products of 64 bits are made of three of 32
	masks mem  // see tailMasks
}

// begin is where a function begins.
func (g *dotGen) begin(format string, args ...any) int {
	g.align(64)
	g.note(format, args...)
	return len(g.buf)
}

// nops are instructions that do nothing, by their length.
var nops = [...]string{"", "\x90", "\x66\x90", "\x0f\x1f\x00", "\x0f\x1f\x40\x00", "\x0f\x1f\x44\x00\x00", "\x66\x0f\x1f\x44\x00\x00",
	"\x0f\x1f\x80\x00\x00\x00\x00", "\x0f\x1f\x84\x00\x00\x00\x00\x00", "\x66\x0f\x1f\x84\x00\x00\x00\x00\x00"}

// align goes on at a multiple of to, which loops are fetched from in one piece.
func (a *asm) align(to int) {
	for a.isa.A64 && len(a.buf)%to != 0 {
		begin := len(a.buf)
		a.emit32(nopA64)
		a.text(begin, "nop")
	}
	for n := -len(a.buf) & (to - 1); n > 0; {
		some := min(n, len(nops)-1)
		begin := len(a.buf)
		a.emit([]byte(nops[some])...)
		a.text(begin, "nop ; %d", some)
		n -= some
	}
}

// vec3 emits an instruction on whole vectors.
func (g *dotGen) vec3(o op, to, x uint8, y rm) {
	g.vector(o, g.isa.Bytes, args{reg: to, v: x, rm: y, imm: noImm})
}

func (g *dotGen) vec3i(o op, to, x uint8, y rm, imm int16) {
	g.vector(o, g.isa.Bytes, args{reg: to, v: x, rm: y, imm: imm})
}

// either emits an instruction of amd64 or one of arm64 on whole vectors. There, what is in
// memory goes through a register.
func (g *dotGen) either(o, n op, to, x uint8, y rm) {
	if !g.isa.A64 {
		g.vec3(o, to, x, y)
		return
	}
	if y.inMem {
		g.loadVec(v30, g.isa.Bytes, y.mem)
		y = inReg(v30)
	}
	g.neon(n, to, x, y.reg, 0)
}

// loadWhole loads a vector of elements.
func (g *dotGen) loadWhole(r uint8, m mem) {
	if g.isa.A64 {
		g.loadVec(r, g.isa.Bytes, m)
		return
	}
	g.vec3(g.get, r, 0, inMem(m))
}

// storeWhole stores one.
func (g *dotGen) storeWhole(m mem, r uint8) {
	if g.isa.A64 {
		g.storeVec(m, g.isa.Bytes, r)
		return
	}
	g.vec3(g.put, r, 0, inMem(m))
}

// at2 is memory at base + index*scale + disp.
func at2(base, index gpr, scale uint8, disp int) mem {
	return mem{base: base, index: index, scale: scale, disp: int32(disp)}
}

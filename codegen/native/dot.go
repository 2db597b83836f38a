package native

import (
	"fmt"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// The code of contractions for one kind of element: tiles, whose results stay in registers while the
// chains run, and functions that bring operands into the order in which tiles read them.
// docs/numerics/order.md defines contractions and their order of additions. Package runtime/cpu
// divides a contraction into tiles.

// Dot is the code for one kind of element. Its numbers are the offsets in Code at which functions
// begin, or -1 for none; each function is called with a frame. A caller with functions of another
// origin may fill in a Dot with its own numbers instead of offsets.
type Dot struct {
	Code    []byte
	Listing string // if NewDot was told to make it

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

// Tile returns the offset of the function for so many rows and vectors of columns: up to Rows rows
// with one or two vectors, or few rows with up to Wide vectors.
func (d *Dot) Tile(rows, vecs int) int { return d.Tiles[rows][vecs] }

// Wide returns how many vectors of columns a tile of so few rows needs. With fewer, each step of k
// would wait for the previous one.
func (d *Dot) Wide(rows int) int {
	if rows < len(d.Wides) {
		return d.Wides[rows]
	}
	return 2
}

// Flags for the work of a tile before and after its steps of k.
const (
	TileFirst = 1 // the results are +0 so far and are not read
	TileOpen  = 2 // the chains begin here; without it they continue from Acc
	TileClose = 4 // the chains end here and are added to the results; without it they are stored in Acc
)

// TileFrame is the argument of a tile. The tile computes Panels panels one after another, each from
// the rows of X and some vectors of columns of Y. All distances are in bytes.
type TileFrame struct {
	X, Y, C, Acc unsafe.Pointer
	LdX          int64 // from row to row of X; k runs along rows
	LdY          int64 // from one step of k to the next in Y
	LdC, LdAcc   int64
	StepY, StepC int64 // from panel to panel; StepC in Acc, too
	K            int64
	Panels       int64
	Tail         int64 // valid columns in the last vector of the last panel of C
	Flags        int64
	// Near is the distance from C to what is prefetched while results are computed, and LdNear the
	// distance between its rows. LdNear is 0 for no prefetching.
	Near, LdNear int64
}

// AlongFrame is the argument of the functions for columns of y that run along k: a tile of one
// vector of columns. Its Y, LdY, StepY, StepC and Panels are not used. K is a multiple of
// AlongStep.
type AlongFrame struct {
	TileFrame
	Columns [16]unsafe.Pointer // one per lane of a vector; several may be equal
}

// Along returns the offset of the function for so many rows, up to AlongRows.
func (d *Dot) Along(rows int) int { return d.Alongs[rows] }

// AlongRows is the largest number of rows that has such a function, or 0.
func (d *Dot) AlongRows() int { return max(len(d.Alongs)-1, 0) }

// dotKind is a kind of element.
type dotKind struct {
	size                               int
	fma, add, mul                      op // fma, or mul and add
	byLane                             op // of arm64: fma, or mul and add, with one lane of a vector
	get, put, spread, getPart, putPart op
}

var (
	dotF32 = &dotKind{4, vfmadd231ps, vaddps, opNone, opNone, vmovups, vmovupsTo, vbroadcastss, vmaskmovps, vmaskmovpsTo}
	dotF64 = &dotKind{8, vfmadd231pd, vaddpd, opNone, opNone, vmovupd, vmovupdTo, vbroadcastsd, vmaskmovpd, vmaskmovpdTo}
	dotI32 = &dotKind{4, opNone, vpaddd, vpmulld, opNone, vmovups, vmovupsTo, vbroadcastss, vmaskmovps, vmaskmovpsTo}
	dotI64 = &dotKind{8, opNone, vpaddq, vpmullq, opNone, vmovupd, vmovupdTo, vbroadcastsd, vmaskmovpd, vmaskmovpdTo}
)

// dotKinds are the elements for which there are tiles. Integer sums and products wrap, so signed and
// unsigned use the same code, and narrower integers are computed in wider ones.
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

// dotGen makes the code of a Dot.
type dotGen struct {
	*asm
	*dotKind
	d     *Dot
	pairs bool // products of 64 bits are made of three products of 32 bits
	masks mem  // see tailMasks
}

// begin begins a function and returns its offset.
func (g *dotGen) begin(format string, args ...any) int {
	g.align(64)
	g.note(format, args...)
	return len(g.buf)
}

// nops are instructions that do nothing, by length.
var nops = [...]string{"", "\x90", "\x66\x90", "\x0f\x1f\x00", "\x0f\x1f\x40\x00", "\x0f\x1f\x44\x00\x00", "\x66\x0f\x1f\x44\x00\x00",
	"\x0f\x1f\x80\x00\x00\x00\x00", "\x0f\x1f\x84\x00\x00\x00\x00\x00", "\x66\x0f\x1f\x84\x00\x00\x00\x00\x00"}

// align continues at a multiple of to, so that the processor fetches a loop's start in one piece.
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

// either emits an instruction of amd64 or one of arm64 on whole vectors. On arm64 an operand in
// memory is first loaded into a register.
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

// storeWhole stores a vector of elements.
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

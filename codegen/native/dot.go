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

// NewDot makes the code for contractions of elements of a dtype.
func NewDot(isa *ISA, dt ir.DType, listed bool) (*Dot, error) {
	b := &Buffer{ISA: isa, Buf: make([]byte, 0, 32<<10), Fixes: make([]Fix, 0, 512)} // enough for 64-byte vectors of float32
	if listed {
		b.Lines = &Listing{}
	}
	d := &Dot{}
	g := &dotGen{Buffer: b, Machine: isa.New(b, nil), D: d}
	if d.Size, g.pairs = g.Elements(dt); d.Size == 0 {
		return nil, fmt.Errorf("codegen/native: contractions of %v are not supported for %s", dt, isa.Name)
	}
	d.Lanes = isa.Bytes / d.Size
	g.tiles()
	g.transposes()
	g.walks()
	g.alongs()
	g.dots()
	g.scans()
	code, err := b.Finish(g.Machine)
	if err != nil {
		return nil, err
	}
	d.Code = code
	if listed {
		d.Listing = b.Lines.String()
	}
	return d, nil
}

// dotGen makes the code of a Dot.
type dotGen struct {
	*Buffer
	Machine
	D     *Dot
	pairs bool // products of 64 bits are made of several products, which takes registers
}

// begin begins a function and returns its offset.
func (g *dotGen) begin(format string, args ...any) int {
	g.align(64)
	g.note(format, args...)
	return len(g.Buf)
}

// align continues at a multiple of to, so that the processor fetches a loop's start in one piece.
func (g *dotGen) align(to int) {
	for n := -len(g.Buf) & (to - 1); n > 0; {
		begin := len(g.Buf)
		some := g.Nop(n)
		g.Text(begin, "nop ; %d", some)
		n -= some
	}
}

// At2 is memory at base + index*scale + disp.
func At2(base, index GPR, scale uint8, disp int) Mem {
	return Mem{Base: base, Index: index, Scale: scale, Disp: int32(disp)}
}

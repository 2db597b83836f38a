//go:build cgo && unix

package contract

/*
#cgo LDFLAGS: -lm
#cgo noescape mr_dot
#cgo nocallback mr_dot
#include "tiles.h"
*/
import "C"

import (
	"errors"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
)

// cElements maps the dtypes that tiles.c supports to its element kinds. Go's own loops handle
// floats if no instruction multiplies and adds with one rounding.
var cElements = map[ir.DType]C.int{
	ir.Float32: C.MR_DOT_F32, ir.Float64: C.MR_DOT_F64,
	ir.Int32: C.MR_DOT_I32, ir.Uint32: C.MR_DOT_I32, ir.Int64: C.MR_DOT_I64, ir.Uint64: C.MR_DOT_I64,
}

var errNoFMA = errors.New("cpu: the C code for contractions was compiled for a processor without fused multiply-add")

// newC lists the C functions for elements of a dtype; their numbers take the place of offsets.
func newC(dt ir.DType) (*functions, error) {
	element, ok := cElements[dt]
	switch {
	case !ok:
		return nil, errNoC
	case floatBitsOf[dt] != nil && C.MR_DOT_FLOATS == 0:
		return nil, errNoFMA
	}
	d := &native.Dot{
		AlongStep: C.MR_DOT_BYTES / dt.Size(),
		Size:      dt.Size(), Lanes: C.MR_DOT_BYTES / dt.Size(), Rows: C.MR_DOT_ROWS,
		Transpose: C.MR_DOT_TRANSPOSE, Panels: C.MR_DOT_PANELS, Load: -1, Store: -1, Dots: -1,
		Differs: C.MR_DOT_DIFFERS, Beyond: C.MR_DOT_BEYOND,
	}
	if d.Rows > 3 {
		d.Wides = []int{0, 8, 4, 4}
	}
	for rows := range d.Rows + 1 {
		if rows <= 4 {
			d.Alongs = append(d.Alongs, C.MR_DOT_TILE+16*rows)
		}
		list := make([]int, 9)
		for vecs := range list {
			list[vecs] = C.MR_DOT_TILE + 16*rows + vecs
		}
		d.Tiles = append(d.Tiles, list)
	}
	return &functions{Dot: d, element: int32(element)}, nil
}

// callC runs a C function. The frame keeps its memory alive.
func callC(element int32, function int, frame unsafe.Pointer) {
	C.mr_dot(C.int(element), C.mr_i64(function), (*C.mr_u64)(frame))
}

// The frames have the same layout in C and Go: the compiler checks sizes, and the offsets that
// could differ.
var (
	_ [unsafe.Sizeof(native.TileFrame{})]byte              = [C.sizeof_mr_tile_frame]byte{}
	_ [unsafe.Sizeof(native.AlongFrame{})]byte             = [C.sizeof_mr_along_frame]byte{}
	_ [unsafe.Sizeof(native.TransposeFrame{})]byte         = [C.sizeof_mr_transpose_frame]byte{}
	_ [unsafe.Sizeof(native.PanelsFrame{})]byte            = [C.sizeof_mr_panels_frame]byte{}
	_ [unsafe.Sizeof(native.DiffersFrame{})]byte           = [C.sizeof_mr_differs_frame]byte{}
	_ [unsafe.Sizeof(native.BeyondFrame{})]byte            = [C.sizeof_mr_beyond_frame]byte{}
	_ [unsafe.Offsetof(native.TileFrame{}.K)]byte          = [unsafe.Offsetof(C.mr_tile_frame{}.k)]byte{}
	_ [unsafe.Offsetof(native.TileFrame{}.Flags)]byte      = [unsafe.Offsetof(C.mr_tile_frame{}.flags)]byte{}
	_ [unsafe.Offsetof(native.TransposeFrame{}.LdDst)]byte = [unsafe.Offsetof(C.mr_transpose_frame{}.lddst)]byte{}
	_ [unsafe.Offsetof(native.PanelsFrame{}.K)]byte        = [unsafe.Offsetof(C.mr_panels_frame{}.k)]byte{}
	_ [unsafe.Offsetof(native.DiffersFrame{}.From)]byte    = [unsafe.Offsetof(C.mr_differs_frame{}.from)]byte{}
	_ [unsafe.Offsetof(native.BeyondFrame{}.Beyond)]byte   = [unsafe.Offsetof(C.mr_beyond_frame{}.beyond)]byte{}
	_ [native.TileFirst]byte                               = [C.MR_TILE_FIRST]byte{}
	_ [native.TileOpen]byte                                = [C.MR_TILE_OPEN]byte{}
	_ [native.TileClose]byte                               = [C.MR_TILE_CLOSE]byte{}
)

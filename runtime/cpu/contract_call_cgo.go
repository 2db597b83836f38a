//go:build cgo

package cpu

/*
#include <stdlib.h>
#include <string.h>
#include "contract_run.h"

// Fills and drains that read and write memory, as a kernel's stages would.
typedef struct { const mr_contract *c; mr_side s; int size; int along; } mem_side;

static void mem_fill(void *ctx, int who, mr_i64 batch, mr_i64 i0, mr_i64 i1, mr_i64 p0, mr_i64 p1, void *dst, mr_i64 ld)
{
	mem_side *m = ctx;
	mr_i64 at = 0;
	for (mr_i64 d = m->c->rank - 1; d >= 0; d--) {
		at += batch % m->c->dims[d] * m->s.batch[d];
		batch /= m->c->dims[d];
	}
	// what exceeds the contract shows as a wrong result
	const int bad = (i1 - i0) * (p1 - p0) > MR_C_FILL || p0 % 8;
	for (mr_i64 i = i0; i < i1; i++)
		for (mr_i64 p = p0; p < p1; p++) {
			const mr_i64 to = m->along ? (i - i0) * ld + (p - p0) : (p - p0) * ld + (i - i0);
			char *d = (char *)dst + to * m->size;
			if (bad)
				memset(d, 0x55, m->size);
			else
				memcpy(d, (const char *)m->s.base + (at + i * m->s.stride + p * m->s.kstride) * m->size, m->size);
		}
}

typedef struct { const mr_contract *c; int size; } mem_drain;

static void mem_store(void *ctx, int who, mr_i64 batch, mr_i64 row0, mr_i64 rows, mr_i64 col0, mr_i64 cols, void *tile, mr_i64 ld)
{
	mem_drain *m = ctx;
	mr_i64 at = 0;
	for (mr_i64 d = m->c->rank - 1; d >= 0; d--) {
		at += batch % m->c->dims[d] * m->c->outbatch[d];
		batch /= m->c->dims[d];
	}
	for (mr_i64 i = 0; i < rows; i++)
		memcpy((char *)m->c->out + (at + (row0 + i) * m->c->outrow + col0) * m->size, (char *)tile + i * ld * m->size, cols * m->size);
}

// Runs c, its sides through fills where kind says so, its sink through a drain.
static int mem_contract(mr_pool *p, mr_contract *c, int level, int xkind, int ykind, int drain)
{
	const int size = mr_contract_level(level)[c->type].size;
	mem_side x = { c, c->x, size, xkind == MR_SIDE_FILL_K }, y = { c, c->y, size, ykind == MR_SIDE_FILL_K };
	mem_drain d = { c, size };
	if (xkind != MR_SIDE_MEM)
		c->x = (mr_side){ .kind = xkind, .fill = mem_fill, .ctx = &x };
	if (ykind != MR_SIDE_MEM)
		c->y = (mr_side){ .kind = ykind, .fill = mem_fill, .ctx = &y };
	if (drain) {
		c->drain = mem_store;
		c->ctx = &d;
	}
	return mr_contract_run(p, c, level);
}
*/
import "C"

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// This file runs single contractions, for tests and benchmarks, which cannot
// use cgo themselves.

var contractTypes = map[ir.DType]C.mr_i64{
	ir.Float32: C.MR_C_F32, ir.Float64: C.MR_C_F64,
	ir.Int8: C.MR_C_I8, ir.Uint8: C.MR_C_I8, ir.Int16: C.MR_C_I16, ir.Uint16: C.MR_C_I16,
	ir.Int32: C.MR_C_I32, ir.Uint32: C.MR_C_I32, ir.Int64: C.MR_C_I64, ir.Uint64: C.MR_C_I64,
}

// nativeContractor runs contractions in C on a pool of its own.
type nativeContractor struct {
	pool  *C.mr_pool
	level int
}

// newNativeContractors has one for every ISA level of this processor.
func newNativeContractors(threads int) (map[string]*nativeContractor, error) {
	m := map[string]*nativeContractor{}
	for level, name := range levelNames {
		if C.mr_contract_level(C.int(level)) == nil {
			continue
		}
		pool := C.mr_pool_open(C.int(threads), 0)
		if pool == nil {
			return nil, errors.New("cpu: the system refuses threads")
		}
		m[name] = &nativeContractor{pool, level}
	}
	return m, nil
}

// contractLevel is the best ISA level whose contractions give the right bits, -1
// where none does, and why it is not that of the block functions. It is asked for
// with the first contraction: a program that has none need not wait for it.
var contractLevel = sync.OnceValues(func() (int, error) {
	var refused error
	best, _ := nativeLevel()
	for level := best; level >= 0; level-- {
		if C.mr_contract_level(C.int(level)) == nil {
			continue
		}
		err := probeLevel(level)
		if err == nil {
			return level, refused
		}
		refused = fmt.Errorf("cpu: the %s contractions are compiled with flags that change results: %w", levelNames[level], err)
	}
	return -1, refused
})

// probeLevel probes the contractions of an ISA level.
func probeLevel(level int) error {
	pool := C.mr_pool_open(1, 0)
	if pool == nil {
		return errors.New("cpu: no memory for a pool")
	}
	n := &nativeContractor{pool, level}
	defer n.close()
	return probeContraction(func(c *contraction) error { return n.contract(c, sideMem, sideMem, false) })
}

func (n *nativeContractor) close() { C.mr_pool_close(n.pool) }

// contract runs c, whose sides and sink are memory; a kind other than sideMem
// makes the engine see a fill.
func (n *nativeContractor) contract(c *contraction, xkind, ykind int, drain bool) error {
	var pin goruntime.Pinner
	defer pin.Unpin()
	for _, p := range []unsafe.Pointer{c.x.base, c.y.base, c.out, c.mask} {
		if p != nil {
			pin.Pin(p)
		}
	}
	q := (*C.mr_contract)(C.calloc(1, C.sizeof_mr_contract))
	defer C.free(unsafe.Pointer(q))
	q.m, q.n, q.k = C.mr_i64(c.m), C.mr_i64(c.n), C.mr_i64(c.k)
	q._type, q.rank, q.threads = contractTypes[c.dt], C.mr_i64(len(c.dims)), C.mr_i64(c.threads)
	q.out, q.outrow = c.out, C.mr_i64(c.outRow)
	q.mask, q.maskrow, q.maskkind = c.mask, C.mr_i64(c.maskRow), C.mr_i64(c.maskKind)
	if c.maskSmall {
		q.masksmall = 1
	}
	q.x.base, q.x.stride, q.x.kstride = c.x.base, C.mr_i64(c.x.stride), C.mr_i64(c.x.kstride)
	q.y.base, q.y.stride, q.y.kstride = c.y.base, C.mr_i64(c.y.stride), C.mr_i64(c.y.kstride)
	for d := range c.dims {
		q.dims[d] = C.mr_i64(c.dims[d])
		q.x.batch[d], q.y.batch[d], q.outbatch[d] = C.mr_i64(c.x.batch[d]), C.mr_i64(c.y.batch[d]), C.mr_i64(c.outBatch[d])
	}
	d := 0
	if drain {
		d = 1
	}
	if C.mem_contract(n.pool, q, C.int(n.level), C.int(xkind), C.int(ykind), C.int(d)) != 0 {
		return errRefused
	}
	return nil
}

// nativePanels is how often the engine in C copied sides into panels at once.
func nativePanels() int64 { return int64(C.mr_panels_walked()) }

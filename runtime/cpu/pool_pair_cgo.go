//go:build cgo && unix

package cpu

/*
#include <stdlib.h>
#include "run.h"
*/
import "C"

import (
	goruntime "runtime"
	"unsafe"
)

// pairedLaunch is an elementwise launch in tier 0 of C that either pool runs, for tests
// that compare them: they cannot use cgo themselves.
type pairedLaunch struct {
	c      *cExecutor
	r      *ready
	launch *C.mr_launch
	args   []*C.mr_args // of each thread
	memory cMemory
}

func newPairedLaunch(r *ready, threads int) (*pairedLaunch, error) {
	e, err := newExecutor(threads, 0)
	if err != nil {
		return nil, err
	}
	p := &pairedLaunch{c: e.(*cExecutor), r: r}
	if !p.c.arena.reset(unsafe.Sizeof(C.mr_launch{}) + launchBytes(r)) {
		p.close()
		return nil, errRefused
	}
	p.launch = &arenaSlice[C.mr_launch](&p.c.arena, 1)[0]
	p.c.write(p.launch, r)
	for range threads {
		a := (*C.mr_args)(p.memory.alloc(int(unsafe.Sizeof(C.mr_args{}))))
		*a = p.launch.args
		a.code = unsafe.Slice(p.launch.phases, 1)[0].code
		scratch := p.memory.alloc(int(r.sched.tier0[0].scratch()) + 64)
		a.scratch = unsafe.Add(scratch, -uintptr(scratch)&63)
		p.args = append(p.args, a)
	}
	return p, nil
}

// inC runs the launch on C's pool.
func (p *pairedLaunch) inC() {
	C.mr_run(p.c.pool, p.launch, 1)
	goruntime.KeepAlive(p)
}

// share runs a part of it on the pool that calls it.
func (p *pairedLaunch) share(who int, begin, end int64) {
	C.mr_tier0_eval(p.args[who], C.mr_i64(begin), C.mr_i64(end))
}

func (p *pairedLaunch) close() {
	p.c.close()
	p.memory.free()
}

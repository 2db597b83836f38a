package cpu

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/runtime"
)

// program is a kernel made ready: its tier-0 form, which always exists, and
// the compiled variants that have been asked for so far.
type program struct {
	dev     *device
	kernel  *codegen.Kernel                 // as fusion wrote it
	lowered func() (*codegen.Kernel, error) // primitives only; made when compiled code is wanted
	text    string                          // of kernel
	tier0   *tier0Prog
	writes  []bool // per operand: a Store writes it
	perItem int64  // bytes that a point touches, for the choice of threads

	variants atomic.Pointer[[]*variant] // replaced, never edited; read without a lock
	mu       sync.Mutex                 // held to add a variant
}

// maxOperands is what a classKey has room for.
const maxOperands = 64

func newProgram(d *device, k *codegen.Kernel, text string) (*program, error) {
	if len(k.Operands) > maxOperands {
		return nil, fmt.Errorf("%d operands, %d are possible", len(k.Operands), maxOperands)
	}
	if len(k.Reduces) > maxReduces {
		return nil, fmt.Errorf("%d reductions, %d are possible", len(k.Reduces), maxReduces)
	}
	p := &program{dev: d, kernel: k, text: text, writes: make([]bool, len(k.Operands))}
	p.lowered = sync.OnceValues(func() (*codegen.Kernel, error) { return codegen.Lower(k) })
	var err error
	if p.tier0, err = buildTier0(k); err != nil {
		return nil, err
	}
	for _, s := range k.Stores {
		p.writes[s.Operand] = true
	}
	for _, o := range k.Operands {
		p.perItem += int64(o.DT.Size())
	}
	// Work counts as well as bytes: some eight primitives cost what a byte costs.
	p.perItem += int64(p.tier0.work) / 8
	p.perItem = max(p.perItem, 1)
	return p, nil
}

// Kernel is the kernel as fusion wrote it.
func (p *program) Kernel() runtime.Kernel { return p.kernel }

// classKey holds the access classes of a launch, two bits each.
type classKey struct {
	lo, hi  uint64
	guarded bool
}

func (k *classKey) set(i int, c codegen.AccessClass) {
	if i < 32 {
		k.lo |= uint64(c) << (2 * i)
	} else {
		k.hi |= uint64(c) << (2 * (i - 32))
	}
}

// variant is what the printer needs.
func (k classKey) variant(n int) cgo.Variant {
	v := cgo.Variant{Guarded: k.guarded}
	for i := range n {
		w := k.lo >> (2 * (i & 31))
		if i >= 32 {
			w = k.hi >> (2 * (i & 31))
		}
		v.Class = append(v.Class, codegen.AccessClass(w&3))
	}
	return v
}

// variant is a program for one combination of access classes.
type variant struct {
	prog *program
	key  classKey
	code atomic.Pointer[byte] // the compiled function (C memory), nil until there is one

	heat   atomic.Int64 // bytes that launches have touched so far
	queued atomic.Bool
	failed atomic.Bool   // was compiled in vain
	done   chan struct{} // closed when compiling has ended, well or not
}

// entry is the compiled function, nil where there is none yet.
func (v *variant) entry() unsafe.Pointer { return unsafe.Pointer(v.code.Load()) }

// variantFor finds or adds the variant of a class.
func (p *program) variantFor(key classKey) *variant {
	if list := p.variants.Load(); list != nil {
		for _, v := range *list {
			if v.key == key {
				return v
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []*variant
	if old := p.variants.Load(); old != nil {
		list = append(list, *old...)
	}
	for _, v := range list {
		if v.key == key {
			return v
		}
	}
	v := &variant{prog: p, key: key, done: make(chan struct{})}
	list = append(list, v)
	p.variants.Store(&list)
	return v
}

package gpurun

import (
	"sync"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/runtime"
)

// maxParts bounds the kernels that launches are decomposed into. They are few and serve launches of
// every size, except in programs that never repeat.
const maxParts = 256

// parts are the programs of those kernels, by text.
type parts struct {
	mu   sync.Mutex
	list map[string]*program
}

// build finds or makes the program of a kernel that a launch is decomposed into. If there are too
// many, it forgets all.
func (b *batch) build(k *codegen.Kernel) (runtime.Program, *codegen.Kernel, error) {
	d, x, key := b.dev, &b.dev.parts, k.String()
	x.mu.Lock()
	p := x.list[key]
	x.mu.Unlock()
	if p != nil {
		return p, p.ready, nil
	}
	p, err := d.build(k)
	if err != nil {
		return nil, nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if other := x.list[key]; other != nil { // another Run was faster
		return other, other.ready, nil
	}
	if len(x.list) == maxParts {
		for _, old := range x.list {
			d.Forget(old)
		}
		clear(x.list)
	}
	x.list[key] = p
	return p, p.ready, nil
}

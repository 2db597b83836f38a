package cpu

import (
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/millrace-go/millrace/codegen"
)

// streams reports an output that is stored past the caches: one larger than
// the last of them, of which the next reader would find nothing there. Storing
// it the usual way reads every line before writing it, and pushes out what is
// still wanted. Where the output lies on an input, its lines are at hand.
// Contractions write tiles that end in the middle of lines, and elementwise
// kernels are bound by arithmetic or by what a copy is bound by. A choice has
// the last word, where the code can do it.
func (r *ready) streams(i int) bool {
	o, a := &r.p.kernel.Operands[i], &r.l.Args[i]
	own := r.p.hasRows && r.outputBytes(i) >= r.p.dev.streamsFrom()
	if o.Kind != codegen.Output || r.dot != nil || !r.choice.on(knobStore, own) {
		return false
	}
	for j, in := range r.p.kernel.Operands {
		if in.Kind == codegen.Input && r.l.Args[j].Buf == a.Buf {
			return false
		}
	}
	return true
}

// streamsFrom is the size of results from which they are stored past the caches.
func (d *device) streamsFrom() int64 {
	if d.streamBytes > 0 {
		return d.streamBytes
	}
	return lastCache()
}

// lastCache is the size of the last-level cache, 32 MiB where the system does
// not tell.
var lastCache = sync.OnceValue(func() int64 {
	for _, level := range []string{"3", "2"} {
		text, err := os.ReadFile("/sys/devices/system/cpu/cpu0/cache/index" + level + "/size")
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(string(text)), "K"), 10, 64); err == nil && n > 0 {
			return n << 10
		}
	}
	return 32 << 20
})

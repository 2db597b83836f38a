package cpu

import (
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/millrace-go/millrace/codegen"
)

// streams reports that an output is stored past the caches, because it is too large for its next
// reader to find it there. A normal store reads every line before writing it, and evicts data that
// is still needed. If the output shares a buffer with an input, its lines are cached anyway.
// Contractions, short rows and scatters store partial lines, so they do not qualify.
func (r *ready) streams(i int) bool {
	o, a := &r.p.kernel.Operands[i], &r.l.Args[i]
	if o.Kind != codegen.Output || r.dot != nil || r.scatter != nil || r.outputBytes(i) < r.p.dev.streamsFrom() || !r.wholeLines(i) {
		return false
	}
	for j, in := range r.p.kernel.Operands {
		if in.Kind == codegen.Input && r.l.Args[j].Buf == a.Buf {
			return false
		}
	}
	return true
}

// longRun is the length of a contiguous run, in bytes, from which a partial line at its end does
// not matter.
const longRun = 32 * line

// wholeLines reports that the contiguous runs stored through an operand are made of whole lines,
// with few exceptions. Storing one half of a line past the caches and the other half normally is
// slower than either way alone.
func (r *ready) wholeLines(i int) bool {
	o := &r.p.kernel.Operands[i]
	_, n := r.innermost(r.l.Rank)
	if o.Row && r.mode == modeRows {
		n = r.tile
	}
	n *= int64(o.DT.Size())
	return n%line == 0 || n >= longRun
}

// outputBytes returns the bytes stored through an operand, or the bytes of the whole buffer if the
// operand stores a piece of it.
func (r *ready) outputBytes(i int) int64 {
	o := &r.p.kernel.Operands[i]
	points := r.total
	if o.Row {
		points = r.outputs
	}
	bytes := points * int64(o.DT.Size())
	if a := &r.l.Args[i]; a.Piece != 0 && a.Buf != nil {
		bytes = max(bytes, a.Buf.Bytes())
	}
	return bytes
}

// streamsFrom returns the size from which results are stored past the caches: half of this
// program's share of the last-level cache. The inputs of a result pass through the cache with it,
// so the beginning of a larger result is evicted before its end is written.
func (d *device) streamsFrom() int64 {
	if d.streamBytes > 0 {
		return d.streamBytes
	}
	return cacheShare(lastCache(), goruntime.NumCPU()) / 2
}

// processorCache is the most bytes of a last-level cache to assume per processor. Chips have 1 to
// 4 MiB per processor, some more.
const processorCache = 4 << 20

// cacheShare returns the part of a last-level cache that this machine can use. A virtual machine
// sees the size of the whole cache, but not its neighbours that use it too.
func cacheShare(size int64, processors int) int64 {
	return min(size, int64(processors)*processorCache)
}

// lastCache returns the size of the last-level cache, 32 MiB if unknown.
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

package cpu

import (
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/millrace-go/millrace/codegen"
)

// streams reports an output that is stored past the caches: one of which the
// next reader would find too little there. Storing it the usual way reads every
// line before writing it, and pushes out what is still wanted. Where the output
// lies on an input, its lines are at hand. Contractions write tiles that end in
// the middle of lines, as short rows do, and scatters write here and there.
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

// longRun is a stretch of memory of which the line at its end does not matter.
const longRun = 32 * line

// wholeLines reports that what is stored through an operand at a stretch is made
// of whole lines, but for few: half of one stored past the caches and the other
// half the usual way takes longer than either.
func (r *ready) wholeLines(i int) bool {
	o := &r.p.kernel.Operands[i]
	_, n := r.innermost(r.l.Rank)
	if o.Row && r.mode == modeRows {
		n = r.tile
	}
	n *= int64(o.DT.Size())
	return n%line == 0 || n >= longRun
}

// outputBytes is the size of what is stored through an operand, or of the buffer of which
// it stores a piece.
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

// streamsFrom is the size of results from which they are stored past the caches:
// half of this program's share of the last one. What a result is computed from
// goes through the cache with it, so a larger one has lost its beginning when its
// end is written.
func (d *device) streamsFrom() int64 {
	if d.streamBytes > 0 {
		return d.streamBytes
	}
	return cacheShare(lastCache(), goruntime.NumCPU()) / 2
}

// processorCache is the most of a last-level cache that is to be counted on for a
// processor. Chips have 1 to 4 MiB for each, some more.
const processorCache = 4 << 20

// cacheShare is what of a last-level cache is this machine's. A virtual machine is
// told the size of the whole, and has neighbours that it is not told of.
func cacheShare(size int64, processors int) int64 {
	return min(size, int64(processors)*processorCache)
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

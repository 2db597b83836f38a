//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import "github.com/millrace-go/millrace/runtime/internal/gpurun"

// span is a part of a buffer that dispatches have used since the last barrier.
type span struct {
	at, end int64
	written bool
}

// maxSpans bounds the spans of a buffer. More become one that contains them all.
const maxSpans = 16

// hazard reports whether a dispatch must wait for those since the last barrier: it uses a part of a
// buffer that was written since, or writes one that was used. A buffer whose epoch is not the device's
// was not used since.
func (d *Device) hazard(x *gpurun.Dispatch, p *Pipeline) bool {
	for i, r := range x.Bind {
		b := own(r.Buf)
		if p.pushes(i) || b.epoch != d.epoch {
			continue
		}
		writes := p.bindings[i] == gpurun.ReadWrite
		for _, s := range b.spans {
			if (writes || s.written) && r.Off < s.end && s.at < r.Off+r.Size {
				return true
			}
		}
	}
	return false
}

// uses notes that a dispatch uses a part of the buffer.
func (b *Buffer) uses(epoch uint64, r gpurun.Range, how gpurun.Binding) {
	if b.epoch != epoch {
		b.epoch, b.spans = epoch, b.spans[:0]
	}
	x := span{r.Off, r.Off + r.Size, how == gpurun.ReadWrite}
	for i := range b.spans {
		if s := &b.spans[i]; s.at <= x.at && x.end <= s.end && (s.written || !x.written) {
			return
		}
	}
	if len(b.spans) == maxSpans {
		for _, s := range b.spans {
			x = span{min(x.at, s.at), max(x.end, s.end), x.written || s.written}
		}
		b.spans = b.spans[:0]
	}
	b.spans = append(b.spans, x)
}

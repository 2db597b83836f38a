package gpurun

import (
	"encoding/binary"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/runtime"
)

// A shader cannot stop at an index out of range. It reads another element instead and reports the
// index in words of the faults binding. The words of a batch are cleared before its submission and
// read after it has run. A Run with such kernels therefore waits for the device; other Runs do not.
//
// A failing launch must look as if neither it nor any later launch had run, because the engine runs
// all of them again. This holds if none of them overwrites its operands. If a launch would, the
// batch is settled before it. A Device with Info.Skips instead skips that launch and all later ones if
// there was a fault: the batch stays one submission.

// faultLog is a batch's state of faults.
type faultLog struct {
	launch int              // index of the launch being added
	faults Buffer           // the batch's words, between submission and settle
	slots  []faultSlot      // words of the faults binding, by dispatch and operand
	reads  []runtime.Buffer // buffers read since the first launch that may fail
	heeded int              // slots whose faults make the device skip the launches that are added
	look   bool             // the next dispatch is the first to heed them
}

// faultSlot describes the words of one operand of one dispatch.
type faultSlot struct {
	launch int
	size   int64 // elements along the axis
}

// mustSettle reports whether l would overwrite buffers that are read by launches that may fail, by
// later launches, or by l itself.
func (b *batch) mustSettle(l *runtime.Launch) bool {
	p, ok := l.Prog.(*program)
	if !ok || len(b.slots) == b.heeded || len(l.Args) != len(p.kernel.Operands) {
		return false
	}
	for i, o := range p.kernel.Operands {
		if o.Kind != codegen.Output {
			continue
		}
		buf := l.Args[i].Buf
		if slices.Contains(b.reads, buf) {
			return true
		}
		for j, in := range p.kernel.Operands {
			if in.Kind == codegen.Input && l.Args[j].Buf == buf {
				return true
			}
		}
	}
	return false
}

// heed makes the launches that follow heed the faults of those before.
func (b *batch) heed() { b.heeded, b.look, b.reads = len(b.slots), true, b.reads[:0] }

// note records what an added launch reads.
func (b *batch) note(l *runtime.Launch) {
	if len(b.slots) == b.heeded {
		return
	}
	for i, o := range l.Prog.(*program).kernel.Operands {
		if o.Kind == codegen.Input {
			b.reads = append(b.reads, l.Args[i].Buf)
		}
	}
}

// faultWords returns the first slot of a dispatch's operands. All dispatches of a scatter share
// their slots.
func (b *batch) faultWords(v *variant, pc *piece) uint32 {
	if pc.slots != nil && *pc.slots >= 0 {
		return uint32(*pc.slots)
	}
	first := 1 + len(b.slots) // the first two words tell of any fault
	if pc.slots != nil {
		*pc.slots = first
	}
	for i, a := range v.Args {
		if a.Fault {
			b.slots = append(b.slots, faultSlot{b.launch, pc.launch.Args[i].IndexSize})
		}
	}
	return uint32(first)
}

func faultBytes(slots []faultSlot) int64 {
	if len(slots) == 0 {
		return 0
	}
	return int64(1+len(slots)) * shader.FaultWords * 4
}

// clearFaults provides the batch's words and clears them. The caller holds d.mu.
func (b *batch) clearFaults() error {
	if len(b.slots) == 0 {
		return nil
	}
	d := b.dev
	if n := len(d.faults); n > 0 && b.faults == nil {
		b.faults, d.faults = d.faults[n-1], d.faults[:n-1]
	}
	if err := d.grow(&b.faults, faultBytes(b.slots), Report); err != nil {
		return err
	}
	return d.memory.again(func() error {
		return d.gpu.Write(b.faults, 0, faultBytes(b.slots), func(dst []byte, _ int64) { clear(dst) })
	})
}

// leaveFaults returns the words for use by another batch.
func (b *batch) leaveFaults() {
	if b.faults == nil {
		return
	}
	d := b.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = append(d.faults, b.faults)
	b.faults = nil
}

// settle waits for the batch and returns the fault of the first failing launch. Other batches can
// submit meanwhile.
func (b *batch) settle() error {
	defer b.leaveFaults()
	slots := b.slots
	b.slots, b.reads, b.heeded, b.look = nil, nil, 0, false
	return b.dev.faultOf(b.faults, slots)
}

// faultOf waits for the device and returns the fault of the first failing launch: its smallest index,
// as on every device.
func (d *Runner) faultOf(faults Buffer, slots []faultSlot) error {
	d.stats.waits.Add(1)
	words := make([]uint32, faultBytes(slots)/4)
	err := d.memory.again(func() error {
		return d.gpu.Read(faults, 0, int64(len(words))*4, func(src []byte, at int64) {
			for i := 0; i < len(src); i += 4 {
				words[(int(at)+i)/4] = binary.LittleEndian.Uint32(src[i:])
			}
		})
	})
	if err != nil {
		return err
	}
	var first *runtime.LaunchError
	least := int64(0)
	words = words[shader.FaultWords:]
	for i, s := range slots {
		index := shader.FaultIndex(words[i*shader.FaultWords+1])
		if words[i*shader.FaultWords] == 0 || first != nil && (s.launch > first.Index || index >= least) {
			continue
		}
		first, least = runtime.OutOfRange(s.launch, index, s.size), index
	}
	if first != nil {
		return first
	}
	return nil
}

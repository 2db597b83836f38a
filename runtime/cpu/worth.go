package cpu

// When compiling a kernel is worth its time. Work is counted in bytes, see program.perItem, and
// never timed: the choice which launches are interpreted depends on the program only.

// heatOfLaunch is added to the bytes of each launch: interpreting one takes microseconds even if
// it has few bytes, and more than that for short rows.
const heatOfLaunch = 8 << 10

// heatForMachine is the heat from which machine code is made for a variant. A kernel that runs a
// second time usually gets code.
const heatForMachine = 3 * heatOfLaunch / 2

// codePoints is about the number of points that the interpreter runs in the time of making machine
// code for their kernel: both times grow with the kernel's body. A provisional kernel gets code
// once its launches had that many points. That pays even if the code is dropped after the launch.
const codePoints = 16 << 10

// heatForCode returns the heat from which machine code is made for a variant.
func (v *variant) heatForCode(provisional bool) int64 {
	if provisional {
		return max(heatForMachine, codePoints*v.sched.prog.perItem)
	}
	return heatForMachine
}

// heatToCompile is the number of bytes that a variant's launches must have touched before a C
// compiler is started for it in the background. A compile costs about 50 ms of one core, in which
// tier 0 touches far more bytes than this. A kernel that runs once on a small tensor never reaches
// it.
const heatToCompile = 4 << 20

// A launch waits for the C compiler if interpreting it would take longer than compiling its
// kernel. A thread interprets about 500 MB/s. A compile takes 0.1 s, and 3 ms for each byte of
// perItem, because its time grows with the kernel's body.
const (
	awaitBytes  = 64 << 20
	awaitPoints = 2 << 20
)

// longInterpreted reports that interpreting a launch takes longer than compiling it from C.
func (r *ready) longInterpreted() bool {
	return r.interpretedPoints()/max(r.threads, 1)*r.p.perItem > awaitBytes+awaitPoints*r.p.perItem
}

// interpretedPoints returns the number of points at which phases are evaluated. For a contraction
// these are the points of its sides and of its result, because its products are never interpreted.
func (r *ready) interpretedPoints() int64 {
	if o := r.dot; o != nil {
		return o.batches * (o.m*o.depth + o.n*o.depth + o.m*o.n)
	}
	return r.total
}

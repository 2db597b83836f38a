package cpu

// When making code of a kernel is worth its time. Work is counted in bytes, see
// program.perItem, and never timed: which launches run interpreted depends on the program
// only.

// heatOfLaunch is what a launch counts for beside its bytes: interpreted it takes
// microseconds however few they are, a kernel of short rows more than most.
const heatOfLaunch = 8 << 10

// heatForMachine is the heat of a variant from which machine code is made for it. A kernel
// that runs a second time has code as a rule.
const heatForMachine = 3 * heatOfLaunch / 2

// codePoints is how many points the interpreter runs, about, while machine code is made
// of their kernel: both times grow with the kernel's body. A provisional kernel gets code
// once its launches had that many points. That pays even if the code is dropped after
// the launch.
const codePoints = 16 << 10

// heatForCode is the heat of a variant from which machine code is made for it.
func (v *variant) heatForCode(provisional bool) int64 {
	if provisional {
		return max(heatForMachine, codePoints*v.sched.prog.perItem)
	}
	return heatForMachine
}

// heatToCompile is how many bytes a variant's launches must have touched before a C
// compiler is started for it in the background: a compile costs some 50 ms of one core, in
// which tier 0 touches far more than this. A kernel that runs once on a small tensor never
// gets there.
const heatToCompile = 4 << 20

// A launch waits for the C compiler where interpreting it would take longer than compiling
// its kernel. A thread interprets some 500 MB/s. A compile takes 0.1 s, and 3 ms for each
// byte of perItem, since its time grows with the kernel's body.
const (
	awaitBytes  = 64 << 20
	awaitPoints = 2 << 20
)

// longInterpreted reports a launch that takes longer interpreted than a C compiler takes.
func (r *ready) longInterpreted() bool {
	return r.interpretedPoints()/max(r.threads, 1)*r.p.perItem > awaitBytes+awaitPoints*r.p.perItem
}

// interpretedPoints are the points at which phases are evaluated: of a contraction those of
// its sides and of its result, since its products are never interpreted.
func (r *ready) interpretedPoints() int64 {
	if o := r.dot; o != nil {
		return o.batches * (o.m*o.depth + o.n*o.depth + o.m*o.n)
	}
	return r.total
}

package dist

// SetProgram replaces the executable's hash.
func SetProgram(o *Options, program string) { o.program = program }

// Ask makes a World behave as after SIGTERM.
func (w *World) Ask() { w.asked.Store(true) }

// Lanes is the number of lanes for collectives of tensors.
func (w *World) Lanes() int { return len(w.hosts) }

// SmallSum is the most bytes of all ranks together that each rank adds by itself.
const SmallSum = smallSum

// Pieces is the number of pieces in which n ranks add so many bytes.
func Pieces(n, bytes int) int { return pieces(n, bytes) }

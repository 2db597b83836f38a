package dist

// SetProgram replaces the executable's hash.
func SetProgram(o *Options, program string) { o.program = program }

// Ask makes a World behave as after SIGTERM.
func (w *World) Ask() { w.asked.Store(true) }

// Lanes is the number of lanes for collectives of tensors.
func (w *World) Lanes() int { return len(w.hosts) }

package dist

// SetProgram replaces the executable's hash.
func SetProgram(o *Options, program string) { o.program = program }

// Ask makes a World behave as after SIGTERM.
func (w *World) Ask() { w.asked.Store(true) }

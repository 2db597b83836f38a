package stream

// SetSite sets a text that stands for the caller's line of the ops that are recorded on the scope's
// stream from now on; "" ends that. It is for code that records the ops of a program written in
// other terms: its own line says nothing to the user, while the name of the program's op does.
//
// A tape keeps the texts of its ops. Plans are shared by all programs of one form, so the lines
// that a plan knows may be those of another program.
func (sc *Scope) SetSite(site string) {
	s := sc.home
	s.mu.Lock()
	s.site = site
	s.mu.Unlock()
}

// sited reports that every op needs its own text. Outside of a tape the hot path is worth more.
func (s *Stream) sited() bool { return s.site != "" && s.taped() }

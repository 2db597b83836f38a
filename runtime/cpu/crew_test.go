package cpu

// inGo has a device run its launches by the Go executor.
func inGo(d *device) {
	for _, c := range []*crews{d.wide, d.alone} {
		c.free = nil
		for range cap(c.slots) {
			w := &crew{exec: newGoExecutor(c.threads)}
			c.free, c.all = append(c.free, w), append(c.all, w)
		}
	}
}

package cpu

// inGo has a device run its launches by the Go executor.
func inGo(d *device) {
	d.wide.close()
	d.alone.close()
	d.newExecutor = func(threads int) (executor, error) { return newGoExecutor(threads), nil }
	d.openCrews()
}

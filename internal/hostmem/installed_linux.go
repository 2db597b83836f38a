package hostmem

import "syscall"

// installed is the machine's memory, 0 if unknown. (Reading /proc/meminfo takes a tenth of the time
// of opening a device.)
func installed() int64 {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return 0
	}
	return int64(info.Totalram) * int64(max(info.Unit, 1))
}

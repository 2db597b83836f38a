// Package hostinfo says where figures come from: the machine, and the source of
// the program that took them.
//
// Engine part: no compatibility promise; use package millrace.
package hostinfo

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// A Machine says where figures come from.
type Machine struct {
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"`
	OS       string `json:"os"`
	Go       string `json:"go"`
	Millrace string `json:"millrace"`
	Commit   string `json:"commit,omitempty"` // of the program's source, where the go command wrote it down
	Date     string `json:"date,omitempty"`   // when it was measured
}

// String is a line of it.
func (m Machine) String() string {
	s := fmt.Sprintf("%s, %d cores, %s, %s, millrace %s", m.CPU, m.Cores, m.OS, m.Go, m.Millrace)
	for _, more := range []string{m.Commit, m.Date} {
		if more != "" {
			s += ", " + more
		}
	}
	return s
}

// This describes the machine and the program that runs.
func This() Machine {
	return Machine{
		CPU:      cpuName(),
		Cores:    runtime.NumCPU(),
		OS:       runtime.GOOS + "/" + runtime.GOARCH,
		Go:       runtime.Version(),
		Millrace: version(),
		Commit:   commit(),
		Date:     time.Now().UTC().Format(time.DateOnly),
	}
}

// cpuName is the model name Linux gives; elsewhere the architecture must do.
func cpuName() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(data)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	return runtime.GOARCH
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// commit is the source's, with a plus where it was changed since.
func commit() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	of := map[string]string{}
	for _, s := range info.Settings {
		of[s.Key] = s.Value
	}
	c := of["vcs.revision"]
	if c = c[:min(len(c), 12)]; c != "" && of["vcs.modified"] == "true" {
		c += "+"
	}
	return c
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
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
	Build    string `json:"build,omitempty"`  // with cgo, or without cgo
	Command  string `json:"command,omitempty"`
	Note     string `json:"note,omitempty"` // what -note says of how it was measured
}

// String is a line of it.
func (m Machine) String() string {
	s := fmt.Sprintf("%s, %d cores, %s, %s", m.CPU, m.Cores, m.OS, m.Go)
	version, commit := "millrace "+m.Millrace, m.Commit
	if commit != "" && strings.HasSuffix(m.Millrace, strings.TrimSuffix(commit, "+")) {
		version, commit = "commit "+commit, "" // a version that is made of it says no more
	}
	for _, more := range []string{version, commit, m.Date, m.Build, m.Note} {
		if more != "" {
			s += ", " + more
		}
	}
	return s
}

// thisMachine describes the machine fusebench runs on.
func thisMachine() Machine {
	return Machine{
		CPU:      cpuName(),
		Cores:    goruntime.NumCPU(),
		OS:       goruntime.GOOS + "/" + goruntime.GOARCH,
		Go:       goruntime.Version(),
		Millrace: millraceVersion(),
		Commit:   commit(),
		Date:     time.Now().UTC().Format(time.DateOnly),
		Build:    build(),
		Command:  strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " "),
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
	return goruntime.GOARCH
}

func millraceVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// settings are those that this program was built with.
func settings() map[string]string {
	of := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			of[s.Key] = s.Value
		}
	}
	return of
}

func build() string {
	switch settings()["CGO_ENABLED"] {
	case "0":
		return "without cgo"
	case "1":
		return "with cgo"
	}
	return ""
}

// commit is the source's, with a plus where it was changed since.
func commit() string {
	of := settings()
	c := of["vcs.revision"]
	if c = c[:min(len(c), 12)]; c != "" && of["vcs.modified"] == "true" {
		c += "+"
	}
	return c
}

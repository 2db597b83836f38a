// Package hostinfo says where figures come from: the machine, and the source of
// the program that took them.
//
// Engine part: no compatibility promise; use package millrace.
package hostinfo

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/millrace-go/millrace/internal/machine"
)

// A Machine says where figures come from.
type Machine struct {
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"`
	OS       string `json:"os"`
	Go       string `json:"go"`
	Millrace string `json:"millrace"`
	Commit   string `json:"commit,omitempty"`  // of the program's source, where the go command wrote it down
	Date     string `json:"date,omitempty"`    // when it was measured
	Build    string `json:"build,omitempty"`   // with cgo, or without cgo
	Command  string `json:"command,omitempty"` // that a program says it was called by
	Note     string `json:"note,omitempty"`    // what -note says of how it was measured
}

// String is a line of it.
func (m Machine) String() string {
	s := fmt.Sprintf("%s, %d cores, %s, %s", m.CPU, m.Cores, m.OS, m.Go)
	source, commit := "millrace "+m.Millrace, m.Commit
	if commit != "" && strings.HasSuffix(m.Millrace, strings.TrimSuffix(commit, "+")) {
		source, commit = "commit "+commit, "" // a version that is made of it says no more
	}
	for _, more := range []string{source, commit, m.Date, m.Build, m.Note} {
		if more != "" {
			s += ", " + more
		}
	}
	return s
}

// This describes the machine and the program that runs.
func This() Machine {
	return Machine{
		CPU:      machine.Processor(),
		Cores:    goruntime.NumCPU(),
		OS:       goruntime.GOOS + "/" + goruntime.GOARCH,
		Go:       goruntime.Version(),
		Millrace: version(),
		Commit:   commit(),
		Date:     time.Now().UTC().Format(time.DateOnly),
		Build:    build(),
	}
}

// Version is that of the program's main module with its commit, as far as they are known.
func Version() string {
	if c := commit(); c != "" {
		return version() + " of commit " + c
	}
	return version()
}

func version() string {
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

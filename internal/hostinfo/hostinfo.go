package hostinfo

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/millrace-go/millrace/internal/machine"
)

// A Machine is the origin of figures.
type Machine struct {
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"`
	OS       string `json:"os"`
	Go       string `json:"go"`
	Millrace string `json:"millrace"`
	Commit   string `json:"commit,omitempty"`  // of the program's source, if the go command recorded it
	Date     string `json:"date,omitempty"`    // of the measurement
	Build    string `json:"build,omitempty"`   // with cgo, or without cgo
	Command  string `json:"command,omitempty"` // how the program says it was called
	Note     string `json:"note,omitempty"`    // -note: remarks on the measurement
}

// String describes it in one line.
func (m Machine) String() string {
	s := fmt.Sprintf("%s, %d cores, %s, %s", m.CPU, m.Cores, m.OS, m.Go)
	source, commit := "millrace "+m.Millrace, m.Commit
	if commit != "" && strings.HasSuffix(m.Millrace, strings.TrimSuffix(commit, "+")) {
		source, commit = "commit "+commit, "" // a version made of the commit says no more
	}
	for _, more := range []string{source, commit, m.Date, m.Build, m.Note} {
		if more != "" {
			s += ", " + more
		}
	}
	return s
}

// This describes the machine and the running program.
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

// Version is that of the program's main module with its commit, if known.
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

// settings are the build settings of this program.
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

// commit is the source's commit, with a plus if the source was changed since.
func commit() string {
	of := settings()
	c := of["vcs.revision"]
	if c = c[:min(len(c), 12)]; c != "" && of["vcs.modified"] == "true" {
		c += "+"
	}
	return c
}

//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"fmt"
	"os"
	"strings"
)

// settingsIn is the environment variable with settings for measurements, such as
// "norobust,fence".
const settingsIn = "MILLRACE_VULKAN"

// settings are what a measurement may change. Results do not depend on them, except for shaders
// that access memory out of bounds.
type settings struct {
	unguarded bool // norobust: the driver does not check accesses of buffers
	fenced    bool // fence: each submission signals a fence, in place of the timeline semaphore
	buffered  bool // nopush: all run-time words are read from buffers
	apart     bool // the host sees no memory of the device, as on most cards: transfers are staged
	oneQueue  bool // onequeue: uploads go through the queue of the dispatches
	skipless  bool // noskip: no dispatch is skipped after a fault; the host waits instead
	emulated  bool // emulated: matrix units that a driver emulates are used
}

func readSettings() (settings, error) { return parseSettings(os.Getenv(settingsIn)) }

func parseSettings(text string) (s settings, err error) {
	for field := range strings.SplitSeq(text, ",") {
		switch strings.TrimSpace(field) {
		case "":
		case "norobust":
			s.unguarded = true
		case "fence":
			s.fenced = true
		case "nopush":
			s.buffered = true
		case "apart":
			s.apart = true
		case "onequeue":
			s.oneQueue = true
		case "noskip":
			s.skipless = true
		case "emulated":
			s.emulated = true
		default:
			return s, fmt.Errorf("%s is %q: want some of norobust, fence, nopush, apart, onequeue, noskip, emulated, with commas between them", settingsIn, text)
		}
	}
	return s, nil
}

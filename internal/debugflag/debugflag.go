package debugflag

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"sync"
)

// Variable is the name of the environment variable.
const Variable = "MILLRACE_DEBUG"

// Flags has a field for each key, which is the field's name in lower case. MILLRACE_DEBUG=help
// prints the help tags, and docs/debugging.md lists them.
type Flags struct {
	Help  bool   `help:"print this list to standard error"`
	Lines bool   `help:"remember the caller's line of every op, so that faults found later name the exact one"`
	Check bool   `help:"run every new plan fused and op by op once, and report the op whose bits differ"`
	Trace string `help:"write a timeline of all devices to this file, for chrome://tracing or ui.perfetto.dev"`

	Report string `help:"write a page of HTML that shows what all devices run to this file, see millrace.Report; it is at most 5 s old while something runs"`

	Log bool `help:"tell log/slog's default logger of faults, and of plans, compiles, tuning and the cache where it takes debug records"`

	Perfmap bool `help:"name machine code that is made in the process in /tmp/perf-PID.map, for perf of Linux"`
}

// Key is one key with its help.
type Key struct {
	Name, Help string
	TakesValue bool
}

// Keys lists the keys in the order of the fields.
func Keys() []Key {
	t := reflect.TypeFor[Flags]()
	keys := make([]Key, t.NumField())
	for i := range keys {
		f := t.Field(i)
		keys[i] = Key{strings.ToLower(f.Name), f.Tag.Get("help"), f.Type.Kind() == reflect.String}
	}
	return keys
}

// Parse reads the variable's text. The error lists every problem and the valid keys.
func Parse(s string) (Flags, error) {
	var flags Flags
	var errs []error
	v := reflect.ValueOf(&flags).Elem()
	keys := Keys()
	for item := range strings.SplitSeq(s, ",") {
		name, value, has := strings.Cut(strings.TrimSpace(item), "=")
		if name == "" && !has {
			continue
		}
		i := indexKey(keys, name)
		switch {
		case i < 0:
			errs = append(errs, fmt.Errorf("%s: unknown key %q; the keys are %s", Variable, name, names(keys)))
		case keys[i].TakesValue && value == "":
			errs = append(errs, fmt.Errorf("%s: %s needs a value, as in %s=FILE", Variable, name, name))
		case keys[i].TakesValue:
			v.Field(i).SetString(value)
		case has:
			errs = append(errs, fmt.Errorf("%s: %s takes no value", Variable, name))
		default:
			v.Field(i).SetBool(true)
		}
	}
	return flags, errors.Join(errs...)
}

func indexKey(keys []Key, name string) int {
	for i, k := range keys {
		if k.Name == name {
			return i
		}
	}
	return -1
}

func names(keys []Key) string {
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = k.Name
	}
	return strings.Join(list, ", ")
}

// PrintHelp writes the list of keys.
func PrintHelp(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s takes these keys, separated by commas:\n", Variable)
	for _, k := range Keys() {
		name := k.Name
		if k.TakesValue {
			name += "=FILE"
		}
		fmt.Fprintf(&b, "  %-12s %s\n", name, k.Help)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Get is the variable's value at the first call. Help is printed then, once: the library prints
// nothing else.
var Get = sync.OnceValues(func() (Flags, error) {
	flags, err := Parse(os.Getenv(Variable))
	if flags.Help {
		err = errors.Join(err, PrintHelp(os.Stderr))
	}
	return flags, err
})

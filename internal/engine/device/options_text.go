package device

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// option is one key of the text form of Options: cpu:threads=2,compile=wait. get returns "" if the
// field has its zero value.
type option struct {
	key  string
	want string // the accepted values, for errors
	what string // its effect, for OptionsHelp
	get  func(*Options) string
	set  func(*Options, string) bool
}

// options is the only list of keys: String prints in its order, ParseOptions reads by it, and
// errors quote it.
var options = []option{
	{"adapter", "part of an adapter's name", "the adapter of a GPU, where there are several",
		func(o *Options) string { return quoteOption(o.Adapter) },
		func(o *Options, s string) bool { o.Adapter = s; return true }},
	isolateOption,
	enumOption("subgroups", "whether a GPU's shaders use subgroups", []string{"on", "off"}, func(o *Options) *runtime.SubgroupMode { return &o.Subgroups }),
	enumOption("narrow", "whether elements of 8 and 16 bits take their own size in a GPU's memory", []string{"on", "off"}, func(o *Options) *runtime.NarrowMode { return &o.Narrow }),
	enumOption("matrices", "whether a GPU's shaders multiply by matrix units", []string{"on", "off"}, func(o *Options) *runtime.MatrixMode { return &o.Matrices }),
	enumOption("precision", "how a GPU multiplies float32 numbers", []string{"full", "bf16x6", "bf16x3"}, func(o *Options) *runtime.PrecisionMode { return &o.Precision }),
	intOption("threads", "worker threads of the CPU; 0: GOMAXPROCS", func(o *Options) *int { return &o.Threads }),
	enumOption("compile", "who makes code of kernels, and when", []string{"background", "wait", "off", "native", "c"}, func(o *Options) *runtime.CompileMode { return &o.Compile }),
	enumOption("tier", "how the CPU runs kernels: 0 interpreted, 1 compiled", []string{"auto", "0", "1"}, func(o *Options) *Tier { return &o.Tier }),
	enumOption("explore", "whether a new segment waits for its best plan", []string{"background", "wait"}, func(o *Options) *ExploreMode { return &o.Explore }),
	enumOption("fusion", "how ops become kernels", []string{"on", "greedy", "off"}, func(o *Options) *FusionMode { return &o.Fusion }),
	enumOption("denormals", "what the CPU's arithmetic makes of denormals", []string{"keep", "flush"}, func(o *Options) *ir.Denormals { return &o.Denormals }),
	enumOption("tune", "when the ways to run a kernel are compared", []string{"background", "wait", "off", "idle"}, func(o *Options) *TuneMode { return &o.Tune }),
	{"tunebudget", "a time, such as 500ms", "the time that this may take in all",
		func(o *Options) string {
			if o.TuneBudget == 0 {
				return ""
			}
			return o.TuneBudget.String()
		},
		func(o *Options, s string) (ok bool) {
			d, err := time.ParseDuration(s)
			o.TuneBudget = d
			return err == nil
		}},
	intOption("queue", "ops after which eager code is cut; 0: 64", func(o *Options) *int { return &o.QueueCap }),
	bytesOption("memory", "the limit of device memory; 0: none", func(o *Options) *int64 { return &o.MemoryLimit }),
	bytesOption("pinned", "the limit of what unwritten results hold alive", func(o *Options) *int64 { return &o.PinnedLimit }),
	{"cache", "a directory, or off", "where plans and kernels are kept",
		func(o *Options) string { return quoteOption(o.Cache) },
		func(o *Options, s string) bool { o.Cache = s; return s != "true" }},
	bytesOption("cachelimit", "the limit of its size; 0: 512 MiB", func(o *Options) *int64 { return &o.CacheLimit }),
	boolOption("check", "run each new plan fused and op by op, and compare", func(o *Options) *bool { return &o.Check }),
	boolOption("lines", "remember the line of every op", func(o *Options) *bool { return &o.Lines }),
	boolOption("report", "remember what runs, for a report", func(o *Options) *bool { return &o.Report }),
}

func intOption(key, what string, field func(*Options) *int) option {
	return option{key, "a number", what,
		func(o *Options) string {
			if n := *field(o); n != 0 {
				return strconv.Itoa(n)
			}
			return ""
		},
		func(o *Options, s string) bool {
			n, err := strconv.Atoi(s)
			*field(o) = n
			return err == nil
		}}
}

// enumOption is the text form of a small enumeration; the first name is the zero value.
func enumOption[E ~uint8](key, what string, names []string, field func(*Options) *E) option {
	return option{key, strings.Join(names, ", "), what,
		func(o *Options) string {
			e := *field(o)
			if e == 0 {
				return ""
			}
			if int(e) < len(names) {
				return names[e]
			}
			return strconv.Itoa(int(e)) // Validate rejects it
		},
		func(o *Options, s string) bool {
			for i, n := range names {
				if n == s {
					*field(o) = E(i)
					return true
				}
			}
			return false
		}}
}

// isolateOption is the key isolate, "on" or "off".
var isolateOption = option{"isolate", "on or off", "a GPU's driver in a process of its own",
	func(o *Options) string {
		if o.Isolate {
			return "on"
		}
		return ""
	},
	func(o *Options, s string) bool {
		o.Isolate = s == "on" || s == "true"
		return o.Isolate || s == "off" || s == "false"
	}}

func boolOption(key, what string, field func(*Options) *bool) option {
	return option{key, "true or false", what,
		func(o *Options) string {
			if *field(o) {
				return "true"
			}
			return ""
		},
		func(o *Options, s string) bool {
			b, err := strconv.ParseBool(s)
			*field(o) = b
			return err == nil
		}}
}

// byteUnits are the suffixes of sizes, largest first: String takes the first one that divides the
// size.
var byteUnits = []struct {
	suffix string
	bytes  int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

func bytesOption(key, what string, field func(*Options) *int64) option {
	return option{key, "bytes, such as 512MiB", what,
		func(o *Options) string {
			n := *field(o)
			if n == 0 {
				return ""
			}
			for _, u := range byteUnits {
				if u.bytes > 1 && n%u.bytes == 0 {
					return strconv.FormatInt(n/u.bytes, 10) + u.suffix
				}
			}
			return strconv.FormatInt(n, 10)
		},
		func(o *Options, s string) bool {
			unit := int64(1)
			for _, u := range byteUnits {
				if num, ok := strings.CutSuffix(s, u.suffix); ok {
					s, unit = num, u.bytes
					break
				}
			}
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil || n > math.MaxInt64/unit || n < math.MinInt64/unit {
				return false
			}
			*field(o) = n * unit
			return true
		}}
}

// quoteOption quotes a value that contains punctuation at which ParseOptions would cut it.
func quoteOption(s string) string {
	if strings.ContainsAny(s, `,="`) || s != strings.TrimSpace(s) {
		return strconv.Quote(s)
	}
	for _, r := range s {
		if !strconv.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	return s
}

// String returns the text form that [ParseOptions] reads: the device, a colon, and the nonzero
// fields as key=value pairs. Trace is not part of it.
func (o Options) String() string {
	var b strings.Builder
	b.WriteString(o.Device)
	sep := ":"
	for i := range options {
		if v := options[i].get(&o); v != "" {
			b.WriteString(sep + options[i].key + "=" + v)
			sep = ","
		}
	}
	return b.String()
}

// ParseOptions reads the text that String prints, such as "cpu" or "cpu:threads=2,compile=wait". A
// key alone, as in "cpu:check", means true. The error lists every problem; for an unknown key it
// lists the valid keys.
func ParseOptions(s string) (Options, error) {
	var o Options
	var errs []error
	device, rest, _ := strings.Cut(s, ":")
	o.Device = strings.TrimSpace(device)
	seen := map[string]bool{}
	for rest != "" {
		var field string
		field, rest = cutOption(rest)
		key, value, has := strings.Cut(field, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if key == "" && !has {
			continue // an extra comma
		}
		opt := findOption(key)
		switch {
		case opt == nil:
			errs = append(errs, fmt.Errorf("option %q: unknown key; the keys are %s", key, optionKeys()))
			continue
		case seen[key]:
			errs = append(errs, fmt.Errorf("option %q is given twice", key))
			continue
		}
		seen[key] = true
		if !has {
			value = "true"
		}
		if strings.HasPrefix(value, `"`) {
			unquoted, err := strconv.Unquote(value)
			if err != nil {
				errs = append(errs, fmt.Errorf("option %s=%s: bad quotes", key, value))
				continue
			}
			value = unquoted
		}
		if !opt.set(&o, value) {
			errs = append(errs, fmt.Errorf("option %s=%q: want %s", key, value, opt.want))
		}
	}
	if err := errors.Join(append(errs, o.Validate())...); err != nil {
		return Options{}, fmt.Errorf("options %q: %w", s, err)
	}
	return o, nil
}

// cutOption splits the text at the first comma outside quotes.
func cutOption(s string) (field, rest string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quoted:
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == ',' && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

func findOption(key string) *option {
	for i := range options {
		if options[i].key == key {
			return &options[i]
		}
	}
	return nil
}

func optionKeys() string {
	keys := make([]string, len(options))
	for i := range options {
		keys[i] = options[i].key
	}
	return strings.Join(keys, ", ")
}

// OptionsHelp lists the keys of the text form, one per line, with their effects and values. The
// first of several names is the default.
func OptionsHelp() string {
	var b strings.Builder
	for _, o := range options {
		fmt.Fprintf(&b, "  %-11s %s (%s)\n", o.key, o.what, o.want)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// conflicts returns errors for impossible combinations, and for names that the text form cannot
// hold. Validate includes them.
func (o *Options) conflicts() []error {
	var errs []error
	if strings.ContainsAny(o.Device, ":, \t\n") {
		errs = append(errs, fmt.Errorf("option Device: %q is not the name of a driver", o.Device))
	}
	if o.Tier == TierCompiled && o.Compile == runtime.CompileOff {
		errs = append(errs, errors.New("option Tier: tier 1 needs code, which compile=off forbids"))
	}
	return errs
}

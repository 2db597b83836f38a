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

// option is one key of the text form of Options: cpu:threads=2,compile=wait.
// get returns "" where the field has its zero value.
type option struct {
	key  string
	want string // what values it takes, for errors
	get  func(*Options) string
	set  func(*Options, string) bool
}

// options is the one list of keys: String prints in its order, ParseOptions
// reads by it, and errors quote it.
var options = []option{
	{"adapter", "part of an adapter's name",
		func(o *Options) string { return quoteOption(o.Adapter) },
		func(o *Options, s string) bool { o.Adapter = s; return true }},
	isolateOption,
	enumOption("subgroups", []string{"on", "off"}, func(o *Options) *runtime.SubgroupMode { return &o.Subgroups }),
	intOption("threads", func(o *Options) *int { return &o.Threads }),
	enumOption("compile", []string{"background", "wait", "off", "native", "c"}, func(o *Options) *runtime.CompileMode { return &o.Compile }),
	enumOption("tier", []string{"auto", "0", "1"}, func(o *Options) *Tier { return &o.Tier }),
	enumOption("explore", []string{"background", "wait"}, func(o *Options) *ExploreMode { return &o.Explore }),
	enumOption("fusion", []string{"on", "greedy", "off"}, func(o *Options) *FusionMode { return &o.Fusion }),
	enumOption("denormals", []string{"keep", "flush"}, func(o *Options) *ir.Denormals { return &o.Denormals }),
	enumOption("tune", []string{"background", "wait", "off", "idle"}, func(o *Options) *TuneMode { return &o.Tune }),
	{"tunebudget", "a time, such as 500ms",
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
	intOption("queue", func(o *Options) *int { return &o.QueueCap }),
	bytesOption("memory", func(o *Options) *int64 { return &o.MemoryLimit }),
	bytesOption("pinned", func(o *Options) *int64 { return &o.PinnedLimit }),
	{"cache", "a directory, or off",
		func(o *Options) string { return quoteOption(o.Cache) },
		func(o *Options, s string) bool { o.Cache = s; return s != "true" }},
	bytesOption("cachelimit", func(o *Options) *int64 { return &o.CacheLimit }),
	boolOption("check", func(o *Options) *bool { return &o.Check }),
	boolOption("lines", func(o *Options) *bool { return &o.Lines }),
	boolOption("report", func(o *Options) *bool { return &o.Report }),
}

func intOption(key string, field func(*Options) *int) option {
	return option{key, "a number",
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

// enumOption spells a small enumeration; its first name is the zero value.
func enumOption[E ~uint8](key string, names []string, field func(*Options) *E) option {
	return option{key, strings.Join(names, ", "),
		func(o *Options) string {
			e := *field(o)
			if e == 0 {
				return ""
			}
			if int(e) < len(names) {
				return names[e]
			}
			return strconv.Itoa(int(e)) // Validate refuses it
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

// isolateOption is on or off.
var isolateOption = option{"isolate", "on or off",
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

func boolOption(key string, field func(*Options) *bool) option {
	return option{key, "true or false",
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

// byteUnits are the suffixes of sizes, largest first so that String finds the
// one that divides.
var byteUnits = []struct {
	suffix string
	bytes  int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

func bytesOption(key string, field func(*Options) *int64) option {
	return option{key, "bytes, such as 512MiB",
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

// quoteOption quotes a value that would otherwise be cut at its punctuation.
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

// String is the text form, which [ParseOptions] reads: the device, a colon,
// and the fields that are not zero as key=value pairs. Trace is not part of it.
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

// ParseOptions reads what String prints: "cpu", "cpu:threads=2,compile=wait".
// A key alone, as in "cpu:check", means true. The error lists every problem
// and, for an unknown key, the keys there are.
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
			continue // a comma too many
		}
		opt := findOption(key)
		switch {
		case opt == nil:
			errs = append(errs, fmt.Errorf("option %q: no such key; there are %s", key, optionKeys()))
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

// cutOption takes the text up to the next comma outside quotes.
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

// conflicts are the combinations that cannot be, and names that would not
// survive the text form. Validate includes them.
func (o *Options) conflicts() []error {
	var errs []error
	if strings.ContainsAny(o.Device, ":, \t\n") {
		errs = append(errs, fmt.Errorf("option Device: %q is no driver's name", o.Device))
	}
	if o.Tier == TierCompiled && o.Compile == runtime.CompileOff {
		errs = append(errs, errors.New("option Tier: tier 1 needs code, which compile=off forbids"))
	}
	return errs
}

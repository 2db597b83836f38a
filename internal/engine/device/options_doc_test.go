package device

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// docRow is a row of the first table of docs/options.md.
type docRow struct{ key, field, values, def string }

// TestOptionsDoc checks that docs/options.md has a row for every option, with its key, field,
// values, default and limit.
func TestOptionsDoc(t *testing.T) {
	text, err := os.ReadFile("../../../docs/options.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Options of a device")
	table, _, _ = strings.Cut(table, "\n## ")
	byField := map[string]docRow{}
	for _, m := range regexp.MustCompile("(?m)^\\| (.*?) \\| `(\\w+)` \\| (.*?) \\| (.*?) \\| .* \\|$").FindAllStringSubmatch(table, -1) {
		byField[m[2]] = docRow{strings.Trim(m[1], "`"), m[2], m[3], m[4]}
	}
	fields := reflect.TypeFor[Options]()
	if len(byField) != fields.NumField() {
		t.Errorf("%d rows for %d fields", len(byField), fields.NumField())
	}
	for i := range fields.NumField() {
		if f := fields.Field(i); byField[f.Name].field == "" {
			t.Errorf("no row for the field %s", f.Name)
		}
	}
	for _, o := range options {
		field := fieldOf(t, &o)
		row := byField[field]
		if row.key != o.key {
			t.Errorf("%s is written as the key of %s, which is %s", row.key, field, o.key)
		}
		row.check(t, &o)
	}
}

// fieldOf is the field that an option sets.
func fieldOf(t *testing.T, o *option) string {
	t.Helper()
	for _, value := range []string{"on", "true", "7", "1s", "off", "wait", "flush", "1", "bf16x3"} {
		var opt Options
		if !o.set(&opt, value) {
			continue
		}
		v := reflect.ValueOf(opt)
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				return v.Type().Field(i).Name
			}
		}
	}
	t.Fatalf("no value sets the option %s", o.key)
	return ""
}

// check compares the values, the default and the limit of a row with an option.
func (r docRow) check(t *testing.T, o *option) {
	set := func(value string) error { _, err := ParseOptions("x:" + o.key + "=" + value); return err }
	switch {
	case o.want == "a number":
		most := 1 << 40
		if _, text, ok := strings.Cut(r.values, "at most "); ok {
			most, _ = strconv.Atoi(text)
			if set(strconv.Itoa(most+1)) == nil {
				t.Errorf("%s may be above %d", o.key, most)
			}
		}
		if err := set(strconv.Itoa(most)); err != nil {
			t.Errorf("%s: %v, and the page says %q", o.key, err, r.values)
		}
	case strings.HasPrefix(o.want, "bytes"):
		if r.values != "size" {
			t.Errorf("%s: values are %q, want size", o.key, r.values)
		}
	case strings.Contains(o.want, ", ") && !strings.HasPrefix(o.want, "a "), strings.Contains(o.want, " or ") && !strings.HasPrefix(o.want, "a "):
		want := strings.Split(strings.ReplaceAll(o.want, " or ", ", "), ", ")
		got := strings.Split(strings.ReplaceAll(r.values, "`", ""), ", ")
		if first := strings.Trim(r.def, "`"); got[0] != first || set(first) != nil || o.get(parsed(o.key, first)) != "" {
			t.Errorf("%s: the default is %s, and the first of %s", o.key, r.def, r.values)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Errorf("%s: the values are %q, want %q", o.key, got, want)
		}
	}
}

func parsed(key, value string) *Options {
	o, _ := ParseOptions("x:" + key + "=" + value)
	return &o
}

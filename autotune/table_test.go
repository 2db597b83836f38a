package autotune

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// times are n rounds around a time, as a noisy clock would give them.
func times(around int64, n int) []int64 {
	ns := make([]int64, n)
	for i := range ns {
		ns[i] = around + around/100*int64(i%3-1)
	}
	return ns
}

func TestOrder(t *testing.T) {
	noisy := times(800, 15)
	for i := range 5 { // as often slower as faster, nearly
		noisy[3*i], noisy[3*i+1] = 1300, 1200
	}
	for _, c := range []struct {
		name string
		rows []Row
		want []int
	}{
		{"alone", []Row{{Name: "default", Nanos: times(1000, 15)}}, []int{0}},
		{"never timed", []Row{{Name: "default"}, {Name: "a"}}, []int{0}},
		{"faster", []Row{{Nanos: times(1000, 15)}, {Nanos: times(800, 15)}}, []int{1, 0}},
		{"the fastest first, then the others", []Row{{Nanos: times(1000, 15)}, {Nanos: times(900, 15)}, {Nanos: times(700, 15)}, {Nanos: times(1100, 15)}}, []int{2, 1, 0}},
		{"equal ones in their order", []Row{{Nanos: times(1000, 15)}, {Nanos: times(700, 15)}, {Nanos: times(700, 15)}}, []int{1, 2, 0}},
		{"hardly faster", []Row{{Nanos: times(1000, 15)}, {Nanos: times(990, 15)}}, []int{0}},
		{"mostly faster", []Row{{Nanos: times(1000, 15)}, {Nanos: noisy}}, []int{0}},
		{"refused", []Row{{Nanos: times(1000, 15)}, {Nanos: times(500, 15), Refused: "other bits"}}, []int{0}},
		{"too few rounds", []Row{{Nanos: times(1000, 15)}, {Nanos: times(500, leastRounds-1)}}, []int{0}},
		{"few rounds, clearly", []Row{{Nanos: times(1000, 15)}, {Nanos: times(500, leastRounds)}}, []int{1, 0}},
		{"slower", []Row{{Nanos: times(1000, 15)}, {Nanos: times(1400, 4)}}, []int{0}},
		{"no time at all", []Row{{Nanos: make([]int64, 15)}, {Nanos: make([]int64, 15)}}, []int{0}},
	} {
		table := &Table{Rows: c.rows}
		if got := table.Order(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		// The same table gives the same order, also when it was written and read.
		for i := range c.rows {
			c.rows[i].Name = c.name + string(rune('a'+i))
		}
		again, err := Parse(table.Text())
		if err != nil || !slices.Equal(again.Order(), c.want) || again.Text() != table.Text() {
			t.Errorf("%s, read again: %v, %v", c.name, again, err)
		}
	}
}

func TestHolds(t *testing.T) {
	table := &Table{Rows: []Row{{Name: "default"}, {Name: "threads=1"}}}
	for _, c := range []struct {
		names []string
		want  bool
	}{
		{[]string{"default", "threads=1"}, true},
		{[]string{"threads=1", "default"}, false},
		{[]string{"default"}, false},
		{[]string{"default", "threads=1", "nt"}, false},
	} {
		if got := table.Holds(c.names); got != c.want {
			t.Errorf("%v: %v", c.names, got)
		}
	}
	// A combination is behind them, and there is one at most.
	one := Row{Name: "a b", From: 30}
	for _, c := range []struct {
		rows []Row
		want bool
	}{
		{[]Row{{Name: "a"}, {Name: "b"}, one}, true},
		{[]Row{{Name: "a"}, {Name: "b"}, one, one}, false},
		{[]Row{{Name: "a"}, {Name: "b", From: 30}}, false},
		{[]Row{{Name: "a"}, {Name: "b"}, {Name: "a b"}}, false},
	} {
		if got := (&Table{Rows: c.rows}).Holds([]string{"a", "b"}); got != c.want {
			t.Errorf("%+v: %v", c.rows, got)
		}
	}
}

// What could not be tried is not what was tried in vain.
func TestLacking(t *testing.T) {
	f := &fake{times: []time.Duration{10 * ms, 8 * ms, 9 * ms}, wrong: map[int]error{1: fmt.Errorf("%w: no compiler", ErrLacking), 2: errors.New("other bits")}}
	table, err := Measure(f.subject())
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(table.Text())
	if err != nil || again.Text() != table.Text() || !slices.Equal(again.Lacking(), []int{1}) || !slices.Equal(again.Order(), []int{0}) || again.Rows[1].Refused == "" {
		t.Errorf("%v\n%s", err, table.Text())
	}
}

// A combination's rounds are compared with those of the default that they were
// taken beside.
func TestRatioOfACombination(t *testing.T) {
	base := append(times(1000, 15), times(2000, 15)...)
	table := &Table{Rows: []Row{{Name: "default", Nanos: base}, {Name: "a", Nanos: times(900, 15)}, {Name: "b", Nanos: times(800, 15)},
		{Name: "a b", Nanos: times(1400, 15), From: 15}}}
	if got := table.Order(); !slices.Equal(got, []int{3, 2, 1, 0}) {
		t.Errorf("order %v", got)
	}
	if got := table.Won(); !slices.Equal(got, []int{2, 1}) {
		t.Errorf("won %v", got)
	}
	again, err := Parse(table.Text())
	if err != nil || again.Text() != table.Text() || !slices.Equal(again.Order(), table.Order()) || !strings.Contains(table.Text(), `"a b" from 15 1386`) {
		t.Errorf("%v\n%s", err, table.Text())
	}
}

const example = "tuning 1\ncandidate \"default\" 1200 1210\ncandidate \"a \\\"b\\\"\" refused \"launch 0: no\\nway\"\ncandidate \"c\"\n"

func TestParse(t *testing.T) {
	table, err := Parse(example)
	if err != nil {
		t.Fatal(err)
	}
	if r := table.Rows; len(r) != 3 || !slices.Equal(r[0].Nanos, []int64{1200, 1210}) || r[1].Name != `a "b"` || r[1].Refused != "launch 0: no\nway" || r[2].Nanos != nil {
		t.Errorf("%+v", table)
	}
	if table.Text() != example {
		t.Errorf("%s", table.Text())
	}
	for _, bad := range []string{"", "tuning 2\n", "tuning 1\n", "tuning 1\ncandidate \"a\"", "tuning 1\nother \"a\"\n", "tuning 1\ncandidate a\n",
		"tuning 1\ncandidate \"a\"1\n", "tuning 1\ncandidate \"a\" 1 -2\n", "tuning 1\ncandidate \"a\" 1  2\n", "tuning 1\ncandidate \"a\" refused \"\"\n",
		"tuning 1\ncandidate \"a\" refused \"x\" 1\n", "tuning 1\ncandidate \"a\" x\n", "tuning 1\ncandidate \"a\" from\n", "tuning 1\ncandidate \"a\" from 0 1\n", "tuning 1\ncandidate \"a\" from 99999\n", "tuning 1\ncandidate \"a\" 1 from 2\n", "tuning 1\n" + strings.Repeat("candidate \"a\"\n", maxRows+1),
		"tuning 1\ncandidate \"a\"" + strings.Repeat(" 1", maxNanos+1) + "\n"} {
		if table, err := Parse(bad); err == nil {
			t.Errorf("%.60q: no error, %+v", bad, table)
		}
	}
}

// FuzzParse: whatever a file holds is an error or a table that can be asked.
func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Add("tuning 1\ncandidate \"d\" 9 8\ncandidate \"a\" from 7 6 5 refused \"x\"\n")
	f.Add("tuning 1\ncandidate \"\" 0 9223372036854775807\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := Parse(text)
		if err != nil {
			return
		}
		order := table.Order()
		if len(order) == 0 || order[len(order)-1] != 0 {
			t.Errorf("order %v", order)
		}
		again, err := Parse(table.Text())
		if err != nil || again.Text() != table.Text() {
			t.Errorf("%q: %v", table.Text(), err)
		}
	})
}

// That something is not tuned is a table, too: it prefers nothing.
func TestUnfit(t *testing.T) {
	table, err := Parse(Unfit([]string{"default", "a"}, TooLong(time.Second)).Text())
	if err != nil || !table.Holds([]string{"default", "a"}) || !strings.Contains(table.Unfit().Error(), "too long: 1s") || !errors.Is(table.Unfit(), ErrTooLong) || !slices.Equal(table.Order(), []int{0}) {
		t.Errorf("%v: %+v", err, table)
	}
	if table := (&Table{Rows: []Row{{Name: "default"}, {Refused: "x"}}}); table.Unfit() != nil {
		t.Error(table.Unfit())
	}
}

package autotune

import (
	"slices"
	"strings"
	"testing"
)

// times returns n times around a time, as from a noisy clock.
func times(around int64, n int) []int64 {
	ns := make([]int64, n)
	for i := range ns {
		ns[i] = around + around/100*int64(i%3-1)
	}
	return ns
}

func TestOrder(t *testing.T) {
	noisy := times(800, 15)
	for i := range 5 { // slower nearly as often as faster
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
		// The same table gives the same order, also after it was written and read.
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
}

const example = "tuning 2\n{\"candidate\":\"default\",\"nanos\":[1200,1210]}\n{\"candidate\":\"a b\",\"refused\":\"launch 0: no\\nway\"}\n{\"candidate\":\"c\"}\n"

func TestParse(t *testing.T) {
	table, err := Parse(example)
	if err != nil {
		t.Fatal(err)
	}
	if r := table.Rows; len(r) != 3 || !slices.Equal(r[0].Nanos, []int64{1200, 1210}) || r[1].Name != `a b` || r[1].Refused != "launch 0: no\nway" || r[2].Nanos != nil {
		t.Errorf("%+v", table)
	}
	if table.Text() != example {
		t.Errorf("%s", table.Text())
	}
	for _, bad := range []string{"", "tuning 2\n", strings.Replace(example, "2", "1", 1), "tuning 1\ncandidate \"a\"\n", "tuning 2\n{}", "tuning 2\n{\n}\n", "tuning 2\n[]\n",
		"tuning 2\n{\"nanos\":[-1]}\n", "tuning 2\n{\"nanos\":[1.5]}\n", "tuning 2\n{\"candidate\":1}\n", "tuning 2\n" + strings.Repeat("{}\n", maxRows+1),
		"tuning 2\n{\"nanos\":[1" + strings.Repeat(",1", maxNanos) + "]}\n"} {
		if table, err := Parse(bad); err == nil {
			t.Errorf("%.60q: no error, %+v", bad, table)
		}
	}
}

// FuzzParse checks that any text gives an error or a table whose methods work.
func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Add("tuning 2\n{\"nanos\":[0,9223372036854775807]}\n")
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

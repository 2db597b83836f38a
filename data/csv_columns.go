package data

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace"
)

const (
	maxClasses = math.MaxInt32
	maxTexts   = 1 << 16 // of one column of categories: each text becomes a column
)

// column is a column of the file that X uses.
type column struct {
	at       int // index among a line's values
	name     string
	category bool
	texts    []string // texts of a category, sorted
	layout   string   // layout of dates
}

// choose finds the columns in the first line, and returns the names of all columns of that line.
func (t *Table) choose(line []string) (names []string, err error) {
	for k, name := range line {
		if !t.opt.Header {
			name = strconv.Itoa(k)
		}
		names = append(names, strings.Clone(trimmed(name)))
	}
	if which := t.opt.Label + t.opt.Target; which != "" { // one of them is empty
		if t.y, err = find(names, which); err != nil {
			return nil, err
		}
	}
	var chosen []int
	for _, which := range t.opt.Columns {
		k, err := find(names, which)
		switch {
		case err != nil:
			return nil, err
		case k == t.y:
			return nil, fmt.Errorf("column %q is in both X and Y", which)
		case slices.Contains(chosen, k):
			return nil, fmt.Errorf("column %q is named twice", which)
		}
		chosen = append(chosen, k)
	}
	if t.opt.Columns == nil {
		for k := range names {
			if k != t.y {
				chosen = append(chosen, k)
			}
		}
	}
	for _, k := range chosen {
		t.cols = append(t.cols, column{at: k, name: names[k]})
	}
	if err := t.kinds(names); err != nil {
		return nil, err
	}
	t.out = Field{"y", millrace.Int32, nil}
	if t.opt.Target != "" {
		t.out.DType = millrace.Float32
	}
	if len(t.opt.Categories) > 0 {
		return names, nil // finish determines the columns of X
	}
	for _, c := range t.cols {
		t.Columns = append(t.Columns, c.name)
	}
	return names, t.shaped()
}

// kinds marks the columns of categories and dates.
func (t *Table) kinds(names []string) error {
	of := func(which, what string) (*column, error) {
		k, err := find(names, which)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(t.cols, func(c column) bool { return c.at == k })
		if i < 0 {
			return nil, fmt.Errorf("%s: column %q is not in X", what, which)
		}
		return &t.cols[i], nil
	}
	for _, which := range t.opt.Categories {
		c, err := of(which, "Categories")
		if err != nil {
			return err
		}
		c.category = true
	}
	for _, which := range slices.Sorted(maps.Keys(t.opt.Dates)) {
		c, err := of(which, "Dates")
		if err != nil {
			return err
		}
		if c.category {
			return fmt.Errorf("column %q is in both Categories and Dates", which)
		}
		if c.layout = t.opt.Dates[which]; c.layout == "" {
			return fmt.Errorf("column %q of Dates has no layout", which)
		}
	}
	return nil
}

// find returns the index of a column given by its name or number.
func find(names []string, which string) (int, error) {
	if k := slices.Index(names, which); k >= 0 {
		if slices.Contains(names[k+1:], which) {
			return 0, bad("several columns have the name %q: use the number of one", which)
		}
		return k, nil
	}
	k, err := strconv.Atoi(which)
	if err == nil && k < 0 {
		k += len(names)
	}
	if err != nil || k < 0 || k >= len(names) {
		return 0, bad("there is no column %q in %q", which, names)
	}
	return k, nil
}

// finish makes X and Y from the values: it sorts texts, makes the columns of categories, and fills
// in means for missing values.
func (t *Table) finish(texts textIDs) error {
	like := t.opt.Like
	if t.opt.Label != "" && t.opt.Classes == 0 {
		place := texts.sorted(labelColumn, &t.Classes)
		if like != nil {
			t.Classes = slices.Clone(like.Classes)
		}
		for i, l := range t.labels {
			t.labels[i] = place[l]
		}
	}
	if len(t.opt.Categories) > 0 {
		t.spread(texts)
		if err := t.shaped(); err != nil {
			return err
		}
	}
	if like != nil && !slices.Equal(t.Columns, like.Columns) {
		return bad("its columns are %q, those of the table in Like are %q", t.Columns, like.Columns)
	}
	if t.opt.Missing == MissingMean {
		return t.fill()
	}
	return nil
}

// spread names a column for each text of each category, and renumbers texts by their order. Read
// computes the values of these columns.
func (t *Table) spread(texts textIDs) {
	t.Texts = map[string][]string{}
	for k := range t.cols {
		c := &t.cols[k]
		if !c.category {
			t.Columns = append(t.Columns, c.name)
			continue
		}
		place := texts.sorted(c.at, &c.texts)
		if t.opt.Like != nil {
			c.texts = slices.Clone(t.opt.Like.Texts[c.name])
		}
		for _, text := range c.texts {
			t.Columns = append(t.Columns, c.name+"="+text)
		}
		t.Texts[c.name] = slices.Clone(c.texts)
		for i := k; i < len(t.values); i += len(t.cols) {
			if v := t.values[i]; v == v {
				t.values[i] = float32(place[int(v)])
			}
		}
	}
}

// fill computes the means of X's columns, or takes them from Like, and puts them in place of
// missing numbers. The mean of a category's column is the share of its text.
func (t *Table) fill() error {
	if like := t.opt.Like; like != nil && like.means != nil {
		t.means = like.means
	} else {
		for k := range t.cols {
			if err := t.mean(k); err != nil {
				return err
			}
		}
	}
	at := 0 // index in X
	for k, c := range t.cols {
		if c.category {
			at += len(c.texts) // Read writes the shares
			continue
		}
		for i := k; i < len(t.values); i += len(t.cols) {
			if v := t.values[i]; v != v {
				t.values[i] = t.means[at]
			}
		}
		at++
	}
	return nil
}

// mean appends the mean of a column, or the shares of its texts.
func (t *Table) mean(k int) error {
	c, sum, n := t.cols[k], 0.0, 0
	counts := make([]int, len(c.texts))
	for i := k; i < len(t.values); i += len(t.cols) {
		v := t.values[i]
		if v != v {
			continue
		}
		if n++; c.category {
			counts[int(v)]++
		} else {
			sum += float64(v)
		}
	}
	if n == 0 {
		return bad("all values of the column %q are missing, so it has no mean", c.name)
	}
	if !c.category {
		t.means = append(t.means, float32(sum/float64(n)))
	}
	for _, count := range counts {
		t.means = append(t.means, float32(float64(count)/float64(n)))
	}
	return nil
}

// record writes a line's values into X.
func (t *Table) record(i int, x []float32) {
	line := t.values[i*len(t.cols) : (i+1)*len(t.cols)]
	at := 0
	for k, c := range t.cols {
		v := line[k]
		if !c.category {
			x[at] = v
			at++
			continue
		}
		part := x[at : at+len(c.texts)]
		switch {
		case v == v:
			clear(part)
			part[int(v)] = 1
		case t.means != nil:
			copy(part, t.means[at:])
		default:
			for j := range part {
				part[j] = nan
			}
		}
		at += len(part)
	}
}

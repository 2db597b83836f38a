package data

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// textIDs numbers the texts of columns of categories, and of the label, in the order of their first
// occurrence.
type textIDs map[int]map[string]int32

// labelColumn is the label's key; no column has this index.
const labelColumn = -1

// id returns a text's number. If known is not nil, only its texts are allowed, and the number is
// the index in it.
func (ids textIDs) id(column int, text string, known []string) (int32, error) {
	list := ids[column]
	if list == nil {
		list = map[string]int32{}
		ids[column] = list
		for i, k := range known {
			list[k] = int32(i)
		}
	}
	id, ok := list[text]
	if ok {
		return id, nil
	}
	if known != nil {
		return 0, fmt.Errorf("%q is not one of the %d texts of the table in Like", text, len(known))
	}
	if column != labelColumn && len(list) == maxTexts {
		return 0, fmt.Errorf("the column has more than %d texts", maxTexts)
	}
	id = int32(len(list))
	list[strings.Clone(text)] = id
	return id, nil
}

// sorted lists a column's texts, and returns for each number its index in the list.
func (ids textIDs) sorted(column int, list *[]string) []int32 {
	*list = slices.Sorted(maps.Keys(ids[column]))
	place := make([]int32, len(*list))
	for k, text := range *list {
		place[ids[column][text]] = int32(k)
	}
	return place
}

// missing reports whether a text stands for a missing value.
func (t *Table) missing(text string) bool {
	return text == "" || strings.EqualFold(text, "nan") || slices.Contains(t.opt.NA, text)
}

// line stores a line's values. On an error, at is the index of the bad value.
func (t *Table) line(line []string, texts textIDs) (at int, err error) {
	if t.opt.Missing == MissingSkip && t.lacks(line) {
		t.Skipped++
		return 0, nil
	}
	for _, c := range t.cols {
		v, err := t.value(c, trimmed(line[c.at]), texts)
		if err != nil {
			return c.at, err
		}
		t.values = append(t.values, v)
	}
	if t.y >= 0 {
		if err := t.result(trimmed(line[t.y]), texts); err != nil {
			return t.y, err
		}
	}
	t.n++
	return 0, nil
}

// lacks reports whether one of the line's needed values is missing.
func (t *Table) lacks(line []string) bool {
	return t.y >= 0 && t.missing(trimmed(line[t.y])) ||
		slices.ContainsFunc(t.cols, func(c column) bool { return t.missing(trimmed(line[c.at])) })
}

var nan = float32(math.NaN())

// value returns a number of X, the number of a category's text, or NaN for a missing value.
func (t *Table) value(c column, text string, texts textIDs) (float32, error) {
	if t.missing(text) {
		if t.opt.Missing == MissingError {
			return 0, fmt.Errorf("%q: the value is missing; CSVOptions.Missing says what to do", text)
		}
		return nan, nil
	}
	switch {
	case c.category:
		var known []string
		if t.opt.Like != nil {
			if known = t.opt.Like.Texts[c.name]; known == nil {
				return 0, fmt.Errorf("the table in Like has no such category")
			}
		}
		id, err := texts.id(c.at, text, known)
		return float32(id), err
	case c.layout != "":
		at, err := time.Parse(c.layout, text)
		if err != nil {
			return 0, fmt.Errorf("%q is not a date in the layout %q", text, c.layout)
		}
		const day = 24 * 60 * 60
		return float32((float64(at.Unix()) + float64(at.Nanosecond())/1e9) / day), nil
	}
	return t.number(text)
}

// number parses a decimal number as Float32.
func (t *Table) number(text string) (float32, error) {
	if !decimal(text) {
		return 0, fmt.Errorf("%q is not a number%s", text, t.hint(text))
	}
	v, err := strconv.ParseFloat(text, 32)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s is out of range", text)
	case err != nil:
		return 0, fmt.Errorf("%q is not a number", text)
	}
	return float32(v), nil
}

// hint suggests the cause of an invalid number.
func (t *Table) hint(text string) string {
	switch {
	case t.n == 0 && t.Skipped == 0 && !t.opt.Header:
		return "; say Header where the first line has names"
	case slices.Contains([]string{"na", "n/a", "null", "none", "nil", "?", "-", ".", "missing", "unknown"}, strings.ToLower(text)):
		return "; CSVOptions.NA has texts that stand for missing values"
	case strings.ContainsAny(text, "_,"):
		return ": digits are not grouped, and the point is \".\""
	case strings.ContainsFunc(text, func(r rune) bool { return r >= 'A' && r <= 'z' || r > 0x7f }):
		return "; CSVOptions has Categories and Dates for columns of texts, and Columns to leave some out"
	}
	return ""
}

// decimal reports whether a text is a decimal number: digits with an optional point and exponent,
// or an infinity.
func decimal(text string) bool {
	s := strings.TrimLeft(text, "+-")
	if len(text)-len(s) > 1 {
		return false
	}
	if strings.EqualFold(s, "inf") || strings.EqualFold(s, "infinity") {
		return true
	}
	digits := 0
	take := func() {
		for s != "" && s[0] >= '0' && s[0] <= '9' {
			s, digits = s[1:], digits+1
		}
	}
	if take(); strings.HasPrefix(s, ".") {
		s = s[1:]
		take()
	}
	if digits == 0 {
		return false
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		digits = 0
		if take(); digits == 0 {
			return false
		}
	}
	return s == ""
}

// result stores a value of Y.
func (t *Table) result(text string, texts textIDs) error {
	if t.missing(text) && (t.opt.Label == "" || t.opt.Classes == 0) {
		return fmt.Errorf("%q: the value of Y is missing; MissingSkip leaves such lines out", text)
	}
	if t.opt.Target != "" {
		v, err := t.number(text)
		t.target = append(t.target, v)
		return err
	}
	if t.opt.Classes == 0 {
		var known []string
		if t.opt.Like != nil {
			if known = t.opt.Like.Classes; known == nil {
				return errors.New("the table in Like has no texts for classes")
			}
		}
		id, err := texts.id(labelColumn, text, known)
		t.labels = append(t.labels, id)
		return err
	}
	l, err := strconv.ParseFloat(text, 64) // some programs write 3 as 3.0
	if err != nil || !decimal(text) || l != math.Trunc(l) {
		return fmt.Errorf("%q is not the number of a class", text)
	}
	if l < 0 || l >= float64(t.opt.Classes) {
		return fmt.Errorf("label %s is not one of %d classes", text, t.opt.Classes)
	}
	t.labels = append(t.labels, int32(l))
	return nil
}

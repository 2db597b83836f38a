package autotune

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// textHead begins the text of a table. Its number grows when the meaning of the text changes.
const textHead = "tuning 2\n"

// Parse refuses larger tables.
const (
	maxRows  = 256
	maxNanos = 1024
)

// Text returns the table in the form that Parse reads: one line of JSON per candidate.
func (t *Table) Text() string {
	b := []byte(textHead)
	for i := range t.Rows {
		row, _ := json.Marshal(&t.Rows[i]) // a Row can always be written
		b = append(append(b, row...), '\n')
	}
	return string(b)
}

var errTable = errors.New("the text is not a tuning table")

// Parse reads a table. An error names the first invalid line.
func Parse(text string) (*Table, error) {
	rest, ok := strings.CutPrefix(text, textHead)
	if !ok || !strings.HasSuffix(rest, "\n") {
		return nil, fmt.Errorf("%w: line 1", errTable)
	}
	t := &Table{}
	for l := range strings.Lines(rest) {
		var r Row
		err := json.Unmarshal([]byte(l), &r)
		if err == nil && (len(r.Nanos) > maxNanos || len(t.Rows) == maxRows || slices.ContainsFunc(r.Nanos, func(n int64) bool { return n < 0 })) {
			err = errors.New("it has too many values, or lacks a time")
		}
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", errTable, len(t.Rows)+2, err)
		}
		t.Rows = append(t.Rows, r)
	}
	return t, nil
}

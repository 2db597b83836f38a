package autotune

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// textHead begins the text of a table. Its number grows when the meaning of
// what follows changes.
const textHead = "tuning 1\n"

// limits of a table that is read: larger ones are none.
const (
	maxRows  = 256
	maxNanos = 1024
)

// Text is the table in the form that Parse reads: a line per candidate, its name
// quoted, from which round on it was timed where that is not the first, its times in
// nanoseconds, and the reason why it is not used where it is not, as refused or
// lacking.
func (t *Table) Text() string {
	b := []byte(textHead)
	for _, r := range t.Rows {
		b = append(b, "candidate "...)
		b = strconv.AppendQuote(b, r.Name)
		if r.From > 0 {
			b = strconv.AppendInt(append(b, fromWord...), int64(r.From), 10)
		}
		for _, n := range r.Nanos {
			b = append(b, ' ')
			b = strconv.AppendInt(b, n, 10)
		}
		if r.Refused != "" {
			word := refusedWord
			if r.Lacking {
				word = lackingWord
			}
			b = strconv.AppendQuote(append(b, word...), r.Refused)
		}
		b = append(b, '\n')
	}
	return string(b)
}

const (
	fromWord    = " from "
	refusedWord = " refused "
	lackingWord = " lacking "
)

var errTable = errors.New("no tuning table")

// Parse reads a table. The error says in which line it is none.
func Parse(text string) (*Table, error) {
	rest, ok := strings.CutPrefix(text, textHead)
	if !ok || rest != "" && !strings.HasSuffix(rest, "\n") {
		return nil, fmt.Errorf("%w: line 1", errTable)
	}
	t := &Table{}
	line := 1
	for l := range strings.Lines(rest) {
		line++
		r, err := parseRow(strings.TrimSuffix(l, "\n"))
		if err == nil && len(t.Rows) == maxRows {
			err = errors.New("too many candidates")
		}
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", errTable, line, err)
		}
		t.Rows = append(t.Rows, r)
	}
	if len(t.Rows) == 0 {
		return nil, fmt.Errorf("%w: no candidate", errTable)
	}
	return t, nil
}

func parseRow(l string) (r Row, err error) {
	l, ok := strings.CutPrefix(l, "candidate ")
	if !ok {
		return r, errors.New("no candidate")
	}
	if r.Name, l, err = cutQuoted(l); err != nil {
		return r, err
	}
	if from, ok := strings.CutPrefix(l, fromWord); ok {
		l = ""
		if i := strings.IndexByte(from, ' '); i >= 0 {
			from, l = from[:i], from[i:]
		}
		if r.From, err = strconv.Atoi(from); err != nil || r.From < 1 || r.From > maxNanos {
			return r, errors.New("no round")
		}
	}
	for l != "" {
		reason, ok := strings.CutPrefix(l, refusedWord)
		if !ok {
			reason, r.Lacking = strings.CutPrefix(l, lackingWord)
		}
		if ok || r.Lacking {
			if r.Refused, l, err = cutQuoted(reason); err == nil && (l != "" || r.Refused == "") {
				err = errors.New("a reason ends the line")
			}
			return r, err
		}
		var word string
		if l, ok = strings.CutPrefix(l, " "); !ok {
			return r, errors.New("no space")
		}
		if i := strings.IndexByte(l, ' '); i >= 0 {
			word, l = l[:i], l[i:]
		} else {
			word, l = l, ""
		}
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil || n < 0 || len(r.Nanos) == maxNanos {
			return r, errors.New("no time")
		}
		r.Nanos = append(r.Nanos, n)
	}
	return r, nil
}

func cutQuoted(l string) (s, rest string, err error) {
	q, err := strconv.QuotedPrefix(l)
	if err != nil {
		return "", "", err
	}
	s, err = strconv.Unquote(q)
	return s, l[len(q):], err
}

package npy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The header of an .npy file is a Python literal. Its values become Go values: string, bool, int,
// tuple, list, and nil for None.
type (
	tuple []any
	list  []any
)

// maxDepth is the most levels of nested tuples and lists. Only records of records need more than
// one.
const maxDepth = 16

var errLiteral = errors.New("the header is not a Python literal")

// wrong returns errLiteral with the position.
func (p *parser) wrong() error {
	if p.text == "" {
		return fmt.Errorf("%w: it ends early", errLiteral)
	}
	return fmt.Errorf("%w: %.20q is unexpected", errLiteral, p.text)
}

// parser reads a header from left to right. The dictionary has depth 0.
type parser struct {
	text  string
	depth int
}

// dict reads {'key': value, …}. A key that occurs twice is an error.
func (p *parser) dict() (map[string]any, error) {
	if !p.take('{') {
		return nil, p.wrong()
	}
	m := map[string]any{}
	for !p.take('}') {
		key, err := p.str()
		if err != nil {
			return nil, err
		}
		if _, twice := m[key]; twice {
			return nil, errors.New("key " + strconv.Quote(key) + " is there twice")
		}
		if !p.take(':') {
			return nil, p.wrong()
		}
		if m[key], err = p.value(); err != nil {
			return nil, err
		}
		if !p.take(',') && !p.next('}') {
			return nil, p.wrong()
		}
	}
	return m, nil
}

func (p *parser) value() (any, error) {
	p.space()
	switch {
	case p.next('\'') || p.next('"'):
		return p.str()
	case p.take('('):
		items, commas, err := p.items(')')
		if err == nil && len(items) == 1 && commas == 0 {
			return items[0], nil // parentheses around a value
		}
		return tuple(items), err
	case p.take('['):
		items, _, err := p.items(']')
		return list(items), err
	}
	return p.word()
}

// items reads the values before the closing bracket.
func (p *parser) items(end byte) (items []any, commas int, err error) {
	if p.depth++; p.depth > maxDepth {
		return nil, 0, p.wrong()
	}
	defer func() { p.depth-- }()
	for !p.take(end) {
		v, err := p.value()
		if err != nil {
			return nil, 0, err
		}
		items = append(items, v)
		if p.take(',') {
			commas++
		} else if !p.next(end) {
			return nil, 0, p.wrong()
		}
	}
	return items, commas, nil
}

// str reads a string in either kind of quotes. It does not decode escapes: no dtype that is read
// has one.
func (p *parser) str() (string, error) {
	p.space()
	if p.text == "" || p.text[0] != '\'' && p.text[0] != '"' {
		return "", p.wrong()
	}
	quote := p.text[0]
	for i := 1; i < len(p.text); i++ {
		switch p.text[i] {
		case '\\':
			i++
		case quote:
			s := p.text[1:i]
			p.text = p.text[i+1:]
			return s, nil
		}
	}
	return "", p.wrong()
}

// word reads True, False, None or a whole number, which Python 2 may have
// written with an L.
func (p *parser) word() (any, error) {
	n := strings.IndexFunc(p.text, func(r rune) bool {
		return r != '-' && r != '+' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	if n < 0 {
		n = len(p.text)
	}
	w := p.text[:n]
	p.text = p.text[n:]
	switch w {
	case "True":
		return true, nil
	case "False":
		return false, nil
	case "None":
		return nil, nil
	}
	i, err := strconv.Atoi(strings.TrimSuffix(w, "L"))
	if errors.Is(err, strconv.ErrRange) {
		return nil, errors.New(w + " is out of range")
	}
	if err != nil {
		return nil, p.wrong()
	}
	return i, nil
}

func (p *parser) space() { p.text = strings.TrimLeft(p.text, " \t\r\n\f") }

// next reports whether the next character is c, and take also steps over it.
func (p *parser) next(c byte) bool {
	p.space()
	return p.text != "" && p.text[0] == c
}

func (p *parser) take(c byte) bool {
	if !p.next(c) {
		return false
	}
	p.text = p.text[1:]
	return true
}

// python writes a value in Python's syntax, for messages.
func python(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case string:
		return strconv.Quote(v)
	case tuple:
		return "a tuple"
	case list:
		return "a list"
	}
	return fmt.Sprint(v)
}

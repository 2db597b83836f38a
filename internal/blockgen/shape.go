package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// shape is the text of functions that differ in types only: T0, T1 and so on instead of tokens.
// Two or more such functions are one function with type parameters. The compiler makes code of its
// own for each basic type, so that is as fast.
type shape struct {
	text  string
	name  string
	fns   []int      // numbers of the functions
	types [][]string // of each, the types of its parameters
}

var token = regexp.MustCompile(`<([a-z]+[0-9]+)>`)

// resolve replaces tokens by types.
func resolve(text string) string { return token.ReplaceAllString(text, "$1") }

// shapeOf replaces tokens by type parameters.
func shapeOf(text string) *shape {
	var types []string
	text = token.ReplaceAllStringFunc(text, func(t string) string {
		t = t[1 : len(t)-1]
		n := slices.Index(types, t)
		if n < 0 {
			n, types = len(types), append(types, t)
		}
		return fmt.Sprintf("<T%d>", n)
	})
	return &shape{text: text, types: [][]string{types}}
}

func (s *shape) add(fn int, types []string) {
	if s.fns = append(s.fns, fn); len(s.fns) > 1 {
		s.types = append(s.types, types)
	}
}

// shared reports that the function has type parameters.
func (s *shape) shared() bool { return len(s.fns) > 1 && len(s.types[0]) > 0 }

// op is the name of the operation that most of the functions compute.
func (s *shape) op(l *list) string {
	if strings.Contains(s.text, "out[i] = p0[i]\n") {
		return "copy"
	}
	count, most := map[string]int{}, ""
	for _, n := range s.fns {
		op := l.fns[n].op
		if count[op]++; count[op] > count[most] {
			most = op
		}
	}
	return most
}

var parameter = regexp.MustCompile(`<T([0-9])>`)

// concrete is the text of a shape's only function.
func (s *shape) concrete() string {
	return parameter.ReplaceAllStringFunc(s.text, func(t string) string { return s.types[0][t[2]-'0'] })
}

func (s *shape) generic() string {
	var params []string
	for n := range s.types[0] {
		var union []string
		for _, types := range s.types {
			if !slices.Contains(union, types[n]) {
				union = append(union, types[n])
			}
		}
		params = append(params, fmt.Sprintf("T%d %s", n, strings.Join(union, " | ")))
	}
	return "[" + strings.Join(params, ", ") + "]" + parameter.ReplaceAllString(s.text, "T$1")
}

// instance is the expression of one of the functions.
func (s *shape) instance(fn int) string {
	if !s.shared() {
		return s.name
	}
	return s.name + "[" + strings.Join(s.types[slices.Index(s.fns, fn)], ", ") + "]"
}

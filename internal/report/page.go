package report

import (
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Limit is the largest size of a page in bytes, unless the parts that cannot be left out are
// larger. A browser shows such a page at once, and it can be sent by mail.
const Limit = 3_000_000

// The page's parts. They are combined by string replacement and not by package html/template, which
// calls methods by name: the linker would then keep every exported method of every program that
// imports this package.
//
//go:embed page.html page.css *.js
var parts embed.FS

// scripts are concatenated in this order, in one function.
var scripts = []string{"dom.js", "format.js", "derive.js", "timeline.js", "lanes.js", "plans.js", "kernels.js", "findings.js", "roofline.js", "memory.js", "counters.js", "page.js"}

// Write writes the page. Parts that exceed Limit are left out and counted on the page. The report
// is not changed; two pages of one report are the same.
func Write(w io.Writer, r *Report) error {
	page, err := build(r, Limit)
	if err != nil {
		return err
	}
	_, err = w.Write(page)
	return err
}

func build(r *Report, limit int) ([]byte, error) {
	shell, err := frame()
	if err != nil {
		return nil, err
	}
	size := 0
	for _, s := range shell {
		size += len(s)
	}
	data, err := encode(r, limit-size)
	if err != nil {
		return nil, err
	}
	page := make([]byte, 0, size+len(data))
	return append(append(append(page, shell[0]...), data...), shell[1]...), nil
}

// frame returns the page before its data and after it.
func frame() (halves [2]string, err error) {
	var js strings.Builder
	js.WriteString("(() => {\n'use strict';\n")
	for _, name := range scripts {
		text, err := parts.ReadFile(name)
		if err != nil {
			return halves, err
		}
		js.Write(text)
	}
	js.WriteString("})();\n")
	css, err := parts.ReadFile("page.css")
	if err != nil {
		return halves, err
	}
	html, err := parts.ReadFile("page.html")
	if err != nil {
		return halves, err
	}
	text := strings.NewReplacer("{{css}}", string(css), "{{js}}", js.String()).Replace(string(html))
	before, after, ok := strings.Cut(text, "{{data}}")
	if !ok {
		return halves, fmt.Errorf("report: page.html has no place for the data")
	}
	return [2]string{before, after}, nil
}

// marshal returns JSON that no HTML parser takes for the end of a script or for a comment:
// encoding/json writes <, > and & as \u003c and so on, and likewise the two line separators that
// older JavaScript took for line ends. Invalid UTF-8 becomes U+FFFD.
func marshal(v any) ([]byte, error) { return json.Marshal(v) }

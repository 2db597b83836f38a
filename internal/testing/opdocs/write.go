package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/optable"
)

const generated = "<!-- Written by go generate ./internal/testing/opdocs: change doc comments or internal/testing/optable, not this page. -->\n\n"

// given is an operand or the dtype in an example.
var given = regexp.MustCompile(`\bo\.(\w+)`)

// write makes the page's text.
func (p page) write(funcs map[string]function, texts map[string]string, pr *probe) (string, error) {
	var body strings.Builder
	used := map[string]bool{}
	for _, g := range p.groups() {
		fmt.Fprintf(&body, "\n## %s\n\n", g.Title)
		if s := intros[g.Title]; s != "" {
			fmt.Fprintf(&body, "%s\n\n", s)
		}
		lines, err := table(g, funcs, texts, pr)
		if err != nil {
			return "", err
		}
		body.WriteString(lines)
		for _, r := range g.Ops {
			for _, m := range given.FindAllStringSubmatch(texts[r.Name], -1) {
				used[m[1]] = true
			}
		}
	}
	head := "# " + p.title + "\n\n" + generated
	if p.intro != "" {
		head += p.intro + "\n"
	}
	if len(used) > 0 {
		head += legend
	}
	return head + operandsOf(used, pr) + body.String(), nil
}

// table is a group's table. It has no column in which nothing would be.
func table(g optable.Group, funcs map[string]function, texts map[string]string, pr *probe) (string, error) {
	head := []string{"operation", "what it is", "dtypes", "gradient", "example"}
	rows := make([][]string, len(g.Ops))
	filled := make([]bool, len(head))
	for i, r := range g.Ops {
		f := funcs[r.Name]
		rows[i] = []string{"`" + f.signature + "`", f.line, "", "", ""}
		if r.Example != nil {
			found, err := pr.find(r, f, texts[r.Name])
			if err != nil {
				return "", err
			}
			rows[i][2], rows[i][3], rows[i][4] = found.dtypes, found.gradient, "`"+found.example+"`"
			if found.prints != "" {
				rows[i][4] += " → " + found.prints
			}
		}
		for k, s := range rows[i] {
			filled[k] = filled[k] || s != ""
		}
	}
	var b strings.Builder
	line := func(cells []string) {
		for k, s := range cells {
			if filled[k] {
				b.WriteString("| " + strings.ReplaceAll(s, "|", `\|`) + " ")
			}
		}
		b.WriteString("|\n")
	}
	line(head)
	line([]string{"---", "---", "---", "---", "---"})
	for _, cells := range rows {
		line(cells)
	}
	return b.String(), nil
}

const legend = "Dtypes are those of `t`, or of the first tensor; an arrow leads to the result's where it is another. Columns are explained in\n" +
	"[operations](../operations.md).\n"

// operandsOf lists the operands that a page's examples name.
func operandsOf(used map[string]bool, pr *probe) string {
	o, names := optable.NewIn(pr.device, millrace.Float32), []string{}
	operands := o.Operands()
	for name := range used {
		if operands[name] != nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	s := "\nIn the examples\n\n"
	for _, name := range names {
		s += fmt.Sprintf("    %-6s %s\n", name, compact(*operands[name]))
	}
	return s
}

// exampleOf is an example on a dtype as its reader writes it.
func exampleOf(text string, dt millrace.DType) string {
	name := dt.String()
	text = strings.ReplaceAll(text, "o.dt", strings.ToUpper(name[:1])+name[1:])
	return strings.ReplaceAll(given.ReplaceAllString(text, "$1"), "millrace.", "")
}

// index is the page that names all operations and links to the others.
func index(funcs map[string]function) string {
	var b strings.Builder
	count := 0
	fmt.Fprintf(&b, "# Operations\n\n%s", generated)
	b.WriteString(preface)
	for _, p := range pages {
		fmt.Fprintf(&b, "\n## [%s](operations/%s)\n\n| what | calls |\n|---|---|\n", p.title, p.file)
		for _, g := range p.groups() {
			var names []string
			for _, r := range g.Ops {
				names = append(names, "`"+strings.TrimPrefix(r.Name, "Tensor.")+"`")
			}
			count += len(names)
			anchor := strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(g.Title, ",", ""), " ", "-"))
			fmt.Fprintf(&b, "| [%s](operations/%s#%s) | %s |\n", g.Title, p.file, anchor, strings.Join(names, ", "))
		}
	}
	return b.String()
}

const preface = `Every public operation on tensors, in packages millrace and linalg. [Rules of the API](api.md) says how names are chosen;
[coming from](coming-from.md) has the names that NumPy, PyTorch and gonum use. Layers and losses are in package nn, optimisers in optim.

The pages have a row for each operation, with

- its signature, where ` + "`t`" + ` is the tensor whose method it is, and the first sentence of its documentation;
- the dtypes that it takes on the CPU: *all*; *numbers*, all but bool; *floats*, of 16, 32 and 64 bits, bfloat16 included; *integers*, signed and unsigned,
  of 8 to 64 bits. GPUs lack some: ` + "`Device.Supports`" + ` says which;
- its gradient: by a *rule* of its own, or by those of the *steps* that it is made of; *0*, for a function that is constant wherever it has a
  derivative; or *no*, for results that are no floats, and where asking for one is an error;
- an example with what it prints.

The CPU ran the examples, and found dtypes and gradients, when the pages were written. A test holds them to that.
`

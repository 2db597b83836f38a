package main

import (
	"bytes"
	"html/template"
	"io"
)

// page is a whole report in one file. It loads no other file and has no scripts.
var page = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>fusebench {{.Title}}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #222; background: #fff; }
figure { margin: 1em 0; overflow-x: auto; } figure svg { max-width: 100%; height: auto; }
.table { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2em .7em; text-align: right; white-space: nowrap; border-bottom: 1px solid #ddd; } th { border-bottom: 2px solid #888; }
.big { font-size: 115%; }
</style>
<h1>{{.Title}}</h1>
<p>{{.Machine}}</p>
{{range .Sentences}}<p class="big">{{.}}</p>
{{end}}{{if .Picture}}<figure>{{.Picture}}</figure>
{{end}}<div class="table"><table>
<tr>{{range .Heads}}<th>{{.}}</th>{{end}}</tr>
{{range .Rows}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>
{{end}}</table></div>
{{range .Notes}}<p>{{.}}</p>
{{end}}</html>
`))

// writeHTML writes the picture, the table and the notes as a page.
func writeHTML(w io.Writer, r *Report) error {
	l := layoutOf(r)
	var picture bytes.Buffer
	if len(chartsOf(r)) > 0 { // peaks has none
		if err := writeSVG(&picture, r); err != nil {
			return err
		}
	}
	svg := picture.Bytes()
	if i := bytes.Index(svg, []byte("<svg")); i >= 0 { // without the head of a file of its own
		svg = svg[i:]
	}
	return page.Execute(w, map[string]any{
		"Title": l.title, "Machine": r.Machine.String(), "Picture": template.HTML(svg), "Sentences": sentences(r),
		"Heads": l.heads(), "Rows": l.cells(r), "Notes": notes(r, l),
	})
}

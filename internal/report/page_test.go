package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func mustWrite(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// dataOf returns the text of a page's data; it finds the end as an HTML parser does.
func dataOf(t *testing.T, page string) string {
	t.Helper()
	_, after, ok := strings.Cut(page, `<script type="application/json" id="data">`)
	if !ok {
		t.Fatal("no data")
	}
	data, _, _ := strings.Cut(after, "</script")
	return data
}

func read(t *testing.T, page string) *Report {
	t.Helper()
	var r Report
	if err := json.Unmarshal([]byte(dataOf(t, page)), &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

// TestWhole: the page refers to no other file, and contains all of the report.
func TestWhole(t *testing.T) {
	r := sample(500)
	page := mustWrite(t, r)
	if got := read(t, page); !reflect.DeepEqual(got, clean(r)) {
		t.Error("the data is not the report")
	}
	shell := strings.Replace(page, dataOf(t, page), "", 1)
	shell = strings.ReplaceAll(shell, "'http://www.w3.org/2000/svg'", "") // a name, not an address
	if bad := regexp.MustCompile(`(?i)https?:|//[a-z]+\.|\bsrc=|@import|url\((?:[^#]|$)|\bimport\b|fetch\(|XMLHttp|WebSocket|eval\(|innerHTML|outerHTML|insertAdjacent`).FindString(shell); bad != "" {
		t.Errorf("the page has %q", bad)
	}
	if hrefs := regexp.MustCompile(`href="[^"]*"`).FindAllString(shell, -1); !slices.Equal(hrefs, []string{`href="data:,"`}) {
		t.Errorf("links: %q", hrefs)
	}
	if !strings.Contains(shell, "default-src 'none'") {
		t.Error("the page may load something")
	}
	if strings.Contains(shell, "{{") {
		t.Error("a place was not filled")
	}
	for _, tag := range []string{"script", "style", "html", "head", "body", "main"} {
		opened, closed := regexp.MustCompile("<"+tag+"[ >]").FindAllString(page, -1), strings.Count(page, "</"+tag+">")
		if len(opened) != closed || closed == 0 {
			t.Errorf("%d of <%s>, %d of its end", len(opened), tag, closed)
		}
	}
}

// TestScripts: no script is forgotten.
func TestScripts(t *testing.T) {
	files, err := fs.Glob(parts, "*.js")
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Sorted(slices.Values(scripts))
	if !slices.Equal(files, want) {
		t.Errorf("files %v, on the page %v", files, want)
	}
}

var hostile = []string{"</script><script>window.broken = 1</script>", "<!--<script>", "\u2028\u2029", "a\xffb\xc3", "]]>", "<img src=x onerror='window.broken = 1'>", "&lt;/script&gt;", "\x00\x1b[31m", `"\u003c`, "{{js}}{{data}}", "__proto__"}

func hostileReport() *Report {
	s := func(i int) string {
		return strings.Join(hostile[i%len(hostile):], " ") + strings.Join(hostile[:i%len(hostile)], " ")
	}
	d := Device{
		Name: s(0), Description: s(1), Sampled: s(2), Rows: []string{s(3)}, Now: 1e6, Flops: 1e10, Bytes: 1e10,
		Counters: []Counter{{s(4), s(5), 7}}, Memory: []Point{{5, 100, 5}}, Peak: Peak{5, 100, []Owner{{s(6), s(7), 1, 100}}},
		Kernels: []Kernel{{Key: s(0), Name: s(1), Ops: s(2), Runs: 1, Timed: 1, Micros: 5, Bytes: 100, Flops: 10, Tier: s(3), Choice: s(4), Sources: []Source{{s(5), s(6), s(7)}}}},
		Plans:   []Plan{{Segment: s(0), Text: s(1), Mode: s(2), Ops: 1, Runs: 1, Kernels: []int{0, -1, 99}, Refused: []string{s(3), "kernels 0 and 1: " + s(0), "kernels 7 and 9: " + s(1)}, Tuning: s(4), Lines: []string{s(5)}}},
		Spans:   []Span{{0, Fault, 1, 0, -1, s(0)}, {0, Launch, 1, 5, 0, s(1)}, {9, Run, 1, 5, 99, s(2)}, {0, Kind(77), 1, 5, 1, s(3)}},
	}
	return &Report{Program: s(0), Go: s(1), Machine: s(2), Devices: []Device{d}}
}

// TestHostile: no text ends the data, and all texts are unchanged.
func TestHostile(t *testing.T) {
	r := hostileReport()
	page := mustWrite(t, r)
	if n := strings.Count(page, "</script"); n != 2 {
		t.Errorf("%d ends of scripts", n)
	}
	if strings.ContainsAny(dataOf(t, page), "<>&\u2028\u2029\x00") || strings.Contains(page, "<!--") {
		t.Error("the data has characters that mean something in HTML")
	}
	if strings.ToValidUTF8(page, "") != page {
		t.Error("the page is not UTF-8")
	}
	got := read(t, page)
	for _, c := range [][2]string{{r.Program, got.Program}, {r.Devices[0].Kernels[0].Name, got.Devices[0].Kernels[0].Name}, {r.Devices[0].Spans[0].Note, got.Devices[0].Spans[0].Note}} {
		if want := strings.NewReplacer("\xff", "\ufffd", "\xc3", "\ufffd").Replace(c[0]); c[1] != want {
			t.Errorf("%q became %q", c[0], c[1])
		}
	}
}

// TestNoNumbers: numbers that JSON cannot express become 0.
func TestNoNumbers(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		r := &Report{Made: time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC), Devices: []Device{{
			Opened: time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC), Now: x, Flops: x, Bytes: x, Peak: Peak{Time: x}, Memory: []Point{{Time: x}},
			Kernels: []Kernel{{Micros: x, Bytes: x, Flops: x}}, Spans: []Span{{Start: x, Dur: x}},
		}}}
		d := read(t, mustWrite(t, r)).Devices[0]
		if d.Now != 0 || d.Flops != 0 || d.Bytes != 0 || d.Peak.Time != 0 || d.Memory[0].Time != 0 || d.Spans[0] != (Span{}) {
			t.Errorf("%v is on the page as %+v", x, d)
		}
		if k := d.Kernels[0]; k.Micros != 0 || k.Bytes != 0 || k.Flops != 0 {
			t.Errorf("%v of a kernel is on the page as %+v", x, k)
		}
	}
}

// TestTwice: writing changes neither the report nor the next page.
func TestTwice(t *testing.T) {
	r, same := large(10000, 6), large(10000, 6)
	first := mustWrite(t, r)
	if !reflect.DeepEqual(r, same) {
		t.Error("the report was changed")
	}
	if mustWrite(t, r) != first {
		t.Error("the next page is another")
	}
}

type broken struct{ error }

func (b broken) Write([]byte) (int, error) { return 0, b.error }

func TestWriteFails(t *testing.T) {
	full := errors.New("disk full")
	if err := Write(broken{full}, sample(5)); err != full {
		t.Errorf("Write fails with %v", err)
	}
}

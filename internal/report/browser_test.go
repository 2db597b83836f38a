package report

import (
	"bytes"
	"flag"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var pictures = flag.String("pictures", "", "folder that keeps the pictures of pages; by default they are thrown away")

// TestBrowser operates a page in Chromium as a user does.
func TestBrowser(t *testing.T) {
	file := write(t, sample(3000))
	for _, scheme := range []struct {
		name string
		dark bool
	}{{"light", false}, {"dark", true}} {
		t.Run(scheme.name, func(t *testing.T) {
			b := start(t, scheme.dark, 1200, 1000)
			b.open(file)
			b.wait("document.querySelector('#timeline canvas').dataset.to")
			var title string
			if b.eval("return document.querySelector('.headline').textContent", &title); !strings.Contains(title, "launches of 12 kernels") {
				t.Errorf("the headline is %q", title)
			}
			looks(t, b, scheme.name, scheme.dark)
			saysItAll(t, b)
			rowOpens(t, b)
			timelineMoves(t, b)
			dotOpens(t, b)
			tableSorts(t, b)
			b.eval("scrollTo(0, 0)", nil)
			b.click("#tab-1")
			b.wait("document.querySelector('#tab-1').getAttribute('aria-selected') === 'true' && document.querySelector('#kernels .empty')")
			looks(t, b, scheme.name+"-empty", scheme.dark)
			quiet(t, b)
		})
	}
}

// quiet fails if the page reported an error.
func quiet(t *testing.T, b *browser) {
	t.Helper()
	for _, c := range b.complaints() {
		t.Errorf("console: %s", c)
	}
}

// looks takes a picture, which must not be empty and must have the background of its color scheme.
func looks(t *testing.T, b *browser, name string, dark bool) {
	t.Helper()
	folder := *pictures
	if folder == "" {
		folder = t.TempDir()
	}
	data := b.screenshot()
	if err := os.WriteFile(filepath.Join(folder, name+".png"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	count := map[color.Color]int{}
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
			count[img.At(x, y)]++
		}
	}
	if len(count) < 30 {
		t.Errorf("%s: the picture has %d colours", name, len(count))
	}
	var ground color.Color
	for c, n := range count {
		if ground == nil || n > count[ground] {
			ground = c
		}
	}
	if r, g, b, _ := ground.RGBA(); dark != (r+g+b < 3*0x4000) {
		t.Errorf("%s: most of the picture is %v", name, ground)
	}
}

// saysItAll checks what a reader sees without a click: the kernels on the first screen, the page's
// age and omissions, and the findings.
func saysItAll(t *testing.T, b *browser) {
	t.Helper()
	var top float64
	b.eval("scrollTo(0, 0); return document.querySelector('tr.kernel').getBoundingClientRect().bottom / innerHeight", &top)
	if top > 0.7 {
		t.Errorf("the first kernel's row ends at %.2f of the first screen", top)
	}
	var text string
	b.eval("return document.body.innerText", &text)
	for _, want := range []string{
		"written 2026-11-26 09:31:12 UTC, and again within 5\u202fs",
		"3 devices that were closed earlier are left out.",
		"Left out of this page: 1,234 older spans and 9 launches of kernels that are not listed.",
		"Slower than necessary", "gpt.go:77", "unknown line", "Recomputed: Nothing needed the result", "Interpreted: ", "Op by op: ",
		"Launch-bound: the kernel has less to do than a launch costs, about 1.80\u202fµs",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	var bound []string
	b.eval("return [...document.querySelectorAll('tr.kernel')].filter(r => r.textContent.includes(' launch')).map(r => r.querySelector('.label').textContent)", &bound)
	if len(bound) != 1 || bound[0] != "cumsum" {
		t.Errorf("launch-bound kernels: %q", bound)
	}
}

func rowOpens(t *testing.T, b *browser) {
	t.Helper()
	row := "tr.kernel[data-kernel='0']"
	b.eval("document.querySelector(arguments[0]).scrollIntoView({block: 'center', behavior: 'instant'})", nil, row)
	b.click(row)
	b.wait("document.querySelector(\"" + row + " button\").getAttribute('aria-expanded') === 'true'")
	var text string
	b.eval("return document.querySelector(arguments[0] + ' + tr').innerText", &text, row)
	for _, want := range []string{"static void kernel", "%3 = gelu %2 : float32", "their rows lie along different axes", "14 ways timed", "gpt.go:41", "9e3779b97f4a7c15"} {
		if !strings.Contains(text, want) {
			t.Errorf("the open row lacks %q", want)
		}
	}
	b.press(row+" button", " ") // by the keyboard
	b.wait("document.querySelector(\"" + row + " + tr\").offsetHeight === 0")
}

func timelineMoves(t *testing.T, b *browser) {
	t.Helper()
	const canvas = "#timeline canvas"
	stretch := func() (v [2]float64) {
		t.Helper()
		b.eval("await new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r))); const d = document.querySelector(arguments[0]).dataset; return [+d.from, +d.to]", &v, canvas)
		return v
	}
	length := func(v [2]float64) float64 { return v[1] - v[0] }
	b.eval("document.querySelector(arguments[0]).scrollIntoView({block: 'center', behavior: 'instant'})", nil, canvas)
	whole := stretch()
	b.click("[aria-label='Zoom in']")
	in := stretch()
	if got := length(in) / length(whole); got < 0.49 || got > 0.51 {
		t.Errorf("a click on + leaves %v of %v", in, whole)
	}
	b.wheel(canvas, -100)
	if now := stretch(); now != in {
		t.Errorf("the wheel zooms before the time line was clicked: %v, %v", in, now)
	}
	b.eval("document.querySelector(arguments[0]).scrollIntoView({block: 'center', behavior: 'instant'}); document.querySelector(arguments[0]).focus()", nil, canvas)
	b.wheel(canvas, -100)
	wheeled := stretch()
	if length(wheeled) >= length(in)*0.9 {
		t.Errorf("the wheel zooms from %v to %v", in, wheeled)
	}
	b.pointer(canvas, true, [2]int{0, 10}, [2]int{-100, 10}, [2]int{-200, 10})
	moved := stretch()
	if d := length(moved) - length(wheeled); moved[0] <= wheeled[0] || d > 1 || d < -1 {
		t.Errorf("dragging to the left moves from %v to %v", wheeled, moved)
	}
	b.press(canvas, "+")
	if now := stretch(); length(now) >= length(moved) {
		t.Errorf("the key + zooms from %v to %v", moved, now)
	}
	b.click("[aria-label='Show the whole time']")
	if now := stretch(); now != whole {
		t.Errorf("All shows %v of %v", now, whole)
	}
	// Select a range of the overview, at the top of the canvas.
	var up int
	b.eval("return 13 - Math.round(document.querySelector(arguments[0]).offsetHeight / 2)", &up, canvas)
	b.pointer(canvas, true, [2]int{-100, up}, [2]int{0, up}, [2]int{100, up})
	if now := stretch(); now[0] <= whole[0] || now[1] >= whole[1] || length(now) > length(whole)/4 {
		t.Errorf("a stretch of the overview shows %v of %v", now, whole)
	}
	b.click("[aria-label='Show the whole time']")
	// A launch under the pointer shows its data, and opens its kernel.
	for range 6 {
		b.press(canvas, "+")
	}
	var at [2]int
	b.eval(`await new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)));
		const c = document.querySelector(arguments[0]), r = c.getBoundingClientRect();
		for (let y = 70; y < 100; y += 3) for (let x = 300; x < r.width - 100; x += 5) {
			c.dispatchEvent(new PointerEvent('pointermove', {clientX: r.left + x, clientY: r.top + y}));
			const tip = document.getElementById('tip');
			if (!tip.hidden && tip.textContent.startsWith('contraction+add+gelu')) return [Math.round(x - r.width / 2), Math.round(y - r.height / 2)];
		}
		return [0, 0];`, &at, canvas)
	if at == [2]int{} {
		t.Fatal("no launch of the largest kernel is under the pointer anywhere")
	}
	b.pointer(canvas, true, at)
	b.wait("document.querySelector(\"tr.kernel[data-kernel='0']\").classList.contains('open')")
	b.click("tr.kernel[data-kernel='0'] button")
}

func dotOpens(t *testing.T, b *browser) {
	t.Helper()
	b.eval("document.querySelector('#roofline').scrollIntoView({block: 'start', behavior: 'instant'})", nil)
	b.wait("document.querySelector(\"circle[data-kernel='2']\")")
	b.click("circle[data-kernel='2']")
	b.wait("document.querySelector(\"tr.kernel[data-kernel='2']\").classList.contains('open')")
	b.wait("(r => r.top >= 0 && r.bottom <= innerHeight)(document.querySelector(\"tr.kernel[data-kernel='2']\").getBoundingClientRect())")
	b.click("tr.kernel[data-kernel='2'] button")
}

func tableSorts(t *testing.T, b *browser) {
	t.Helper()
	first := func() (name string) {
		t.Helper()
		b.eval("return document.querySelector('tr.kernel .label').textContent", &name)
		return name
	}
	b.eval("document.querySelector('#kernels').scrollIntoView({block: 'start', behavior: 'instant'})", nil)
	if got := first(); got != "contraction+add+gelu" {
		t.Errorf("by time the first is %s", got)
	}
	b.click("thead th:nth-child(6) button") // GB/s
	if got := first(); got != "sum" {
		t.Errorf("by bytes a second the first is %s", got)
	}
	b.click("thead th:nth-child(1) button")
	if got := first(); got != "add+layernorm" {
		t.Errorf("by name the first is %s", got)
	}
}

// TestBrowserStates opens pages of devices without work, without collected times, and with texts
// that contain markup.
func TestBrowserStates(t *testing.T) {
	b := start(t, false, 600, 900)
	untimed := sample(200)
	d := &untimed.Devices[0]
	d.Spans, d.Memory, d.Peak.Owners, d.Flops, d.Bytes = nil, nil, nil, 0, 0
	for k := range d.Kernels {
		d.Kernels[k].Timed, d.Kernels[k].Micros = 0, 0
	}
	for _, c := range []struct {
		report *Report
		says   []string
	}{
		{&Report{}, []string{"No device was opened."}},
		{&Report{Devices: []Device{{Name: "cpu"}}}, []string{"No launches yet", "Nothing ran yet", "No plan was made yet", "No cache was used yet"}},
		{untimed, []string{"Times were not collected.", "No times were collected", "changes over time were not collected"}},
		{&Report{Devices: []Device{{Name: "cpu", Findings: []Finding{{"", "", "", 0}, {"recomputed", hostile[0], hostile[1], 1}}, SpansLeft: 1234, Rows: []string{"stream 1"}, Spans: []Span{{0, Launch, 5, 0, -1, ""}}, Kernels: []Kernel{{}}, KernelsLeft: 2, PlansLeft: 1, SourcesLeft: 7}}},
			[]string{"1,234 older spans are left out", "2 kernels are left out", "1 plan is left out", "The code of 7 variants is left out"}},
		{hostileReport(), []string{hostile[0], hostile[1]}},
	} {
		b.open(write(t, c.report))
		b.wait("!document.querySelector('noscript p, main:empty') && document.querySelector('main').textContent")
		b.eval("document.querySelectorAll('tr.kernel button').forEach(k => k.click()); document.querySelectorAll('details').forEach(k => { k.open = true; })", nil)
		var text string
		b.eval("await new Promise(r => setTimeout(r, 100)); return document.body.innerText", &text)
		for _, want := range c.says {
			if !strings.Contains(text, want) {
				t.Errorf("the page does not say %q:\n%s", want, text)
			}
		}
		for _, not := range []string{"NaN", "undefined", "Infinity", "null", "[object"} {
			if strings.Contains(text, not) {
				t.Errorf("the page says %s:\n%s", not, text)
			}
		}
		var strange int
		b.eval("return document.querySelectorAll('main img, main script, main b b, main iframe').length + (window.broken ? 1 : 0)", &strange)
		if strange != 0 {
			t.Error("a text became markup")
		}
		var wide []string
		b.eval(`const over = document.documentElement.scrollWidth > innerWidth;
			return over ? [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth && !e.closest('.wide')).map(e => e.outerHTML.slice(0, 80)) : []`, &wide)
		if len(wide) > 0 {
			t.Errorf("the page is wider than its window: %q", wide)
		}
		quiet(t, b)
	}
}

// TestBrowserMany: a page of the largest size is shown at once.
func TestBrowserMany(t *testing.T) {
	b := start(t, false, 1200, 900)
	b.open(write(t, sample(10000)))
	b.wait("document.querySelector('#timeline canvas').dataset.to")
	var ms float64
	b.eval(`const c = document.querySelector('#timeline canvas'), key = (k) => c.dispatchEvent(new KeyboardEvent('keydown', {key: k}));
		const frame = () => new Promise(r => requestAnimationFrame(r));
		await frame();
		const start = performance.now();
		for (let i = 0; i < 10; i++) { key(i % 2 ? '-' : '+'); await frame(); }
		return (performance.now() - start) / 10`, &ms)
	t.Logf("a frame of 10,000 launches takes %.1f ms", ms)
	quiet(t, b)
}

func write(t *testing.T, r *Report) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "page.html"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(f, r); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

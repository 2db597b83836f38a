package main

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/millrace-go/millrace/internal/paired"
)

// writeSVG draws a report: for each device a bar for every contestant, with the interval of its
// median, and a line at the time of the copy. The time axis is logarithmic, because fused and
// unfused times differ by a factor of ten and more.
func writeSVG(w io.Writer, r *Report) error {
	charts := chartsOf(r)
	if len(charts) == 0 {
		return fmt.Errorf("no row has times to draw")
	}
	const width = 9 * vg.Inch
	height := 2 * vg.Points(4)
	plots := make([]*plot.Plot, len(charts))
	for i, c := range charts {
		p, err := c.plot()
		if err != nil {
			return err
		}
		plots[i] = p
		height += c.height()
	}
	canvas := vgsvg.New(width, height)
	whole := draw.Crop(draw.New(canvas), vg.Points(8), -vg.Points(8), vg.Points(4), -vg.Points(4))
	top := whole.Max.Y
	for i, c := range charts {
		part := whole
		part.Max.Y, part.Min.Y = top, top-c.height()
		top = part.Min.Y
		plots[i].Draw(part)
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	_, err := w.Write(bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif")))
	return err
}

// chart is the chart of one device.
type chart struct {
	title string
	bars  []bar
	copy  float64 // in ms; 0: there is no copy
}

// bar is a median with its interval, in ms.
type bar struct {
	name         string
	ms, from, to float64
	fill         color.Color
}

// Colours that people with colour blindness can tell apart (Okabe and Ito's).
var modeColors = map[string]color.Color{
	fused: color.RGBA{0, 114, 178, 255}, tuned: color.RGBA{0, 158, 115, 255}, unfused: color.RGBA{230, 159, 0, 255},
}

var otherColor = color.RGBA{130, 130, 130, 255}

func chartsOf(r *Report) (charts []*chart) {
	title := layoutOf(r).title
	by := map[string]*chart{}
	for _, row := range r.Rows {
		if row.Error != "" || len(row.seconds) == 0 {
			continue
		}
		c := by[row.Device]
		if c == nil {
			c = &chart{title: title + ", on " + row.Device}
			by[row.Device] = c
			charts = append(charts, c)
		}
		if c.copy == 0 && !row.CopyMS.missing() && sameBytes(r.Rows, row.Device) {
			c.copy = float64(row.CopyMS)
		}
		ones := slices.Repeat([]float64{1}, len(row.seconds))
		e := paired.Ratio(row.seconds, ones)
		b := bar{name: row.Variant + ", " + row.Mode, ms: e.Mid * 1e3, from: e.Lo * 1e3, to: e.Hi * 1e3, fill: otherColor}
		if row.Train != nil {
			b.name += ", " + row.Train.How
		}
		if f, ok := modeColors[row.Mode]; ok {
			b.fill = f
		}
		c.bars = append(c.bars, b)
	}
	return charts
}

// sameBytes reports that all rows of a device are compared with a copy of equally many bytes.
func sameBytes(rows []Row, device string) bool {
	n := int64(-1)
	for _, r := range rows {
		if r.Device != device || r.Error != "" {
			continue
		}
		if n >= 0 && r.IOBytes != n {
			return false
		}
		n = r.IOBytes
	}
	return true
}

const barHeight = 0.24 * vg.Inch

func (c *chart) height() vg.Length { return vg.Length(len(c.bars))*barHeight + 1.25*vg.Inch }

// sans has the widths of Arial and Helvetica, which nearly every viewer has.
var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

func (c *chart) plot() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = c.title
	for _, s := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		s.Font = font.From(sans, vg.Points(10))
	}
	p.Title.TextStyle.Font.Size = vg.Points(12)
	p.Title.Padding = vg.Points(4)
	p.X.Label.Text = "ms, logarithmic"
	if c.copy > 0 {
		p.X.Label.Text += "; dashed: a copy of the same bytes, " + short(number(c.copy)) + " ms"
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, decades{}
	lo, hi := math.Inf(1), 0.0
	var names []string
	for i := len(c.bars) - 1; i >= 0; i-- { // the first bar is the topmost
		names = append(names, c.bars[i].name)
		lo, hi = min(lo, c.bars[i].from), max(hi, c.bars[i].to)
	}
	if c.copy > 0 {
		lo, hi = min(lo, c.copy), max(hi, c.copy)
	}
	if lo <= 0 || math.IsInf(hi, 1) || math.IsNaN(lo) {
		return nil, fmt.Errorf("%s: times from %g to %g ms cannot be drawn", c.title, lo, hi)
	}
	p.NominalY(names...)
	p.Add(bars{c.bars})
	if c.copy > 0 {
		line, err := plotter.NewLine(plotter.XYs{{X: c.copy, Y: -0.5}, {X: c.copy, Y: float64(len(names)) - 0.5}})
		if err != nil {
			return nil, err
		}
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		p.Add(line)
	}
	p.X.Min, p.X.Max = lo/1.6, hi*1.9 // the shortest bar stays visible, and there is room for the longest one's number
	p.Y.Min, p.Y.Max = -0.6, float64(len(names))-0.4
	return p, nil
}

// decades marks 1, 2 and 5 of each power of ten.
type decades struct{}

// Ticks returns the marks between two times in ms.
func (decades) Ticks(lo, hi float64) (ticks []plot.Tick) {
	for e := math.Floor(math.Log10(lo)); e <= math.Ceil(math.Log10(hi)); e++ {
		for _, m := range []float64{1, 2, 5} {
			if v := m * math.Pow(10, e); v >= lo && v <= hi {
				ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%g", v)})
			}
		}
	}
	return ticks
}

// bars draws bars from the left edge, each with an interval and a number.
type bars struct{ list []bar }

// Plot draws the bars, the first one topmost.
func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	label := text.Style{Color: color.Black, Font: font.From(sans, vg.Points(9)), XAlign: draw.XLeft, YAlign: draw.YCenter, Handler: plot.DefaultTextHandler}
	for i, k := range b.list {
		at := y(float64(len(b.list) - 1 - i))
		half := barHeight / 3
		left, right := c.Min.X, x(k.ms)
		c.FillPolygon(k.fill, []vg.Point{{X: left, Y: at - half}, {X: right, Y: at - half}, {X: right, Y: at + half}, {X: left, Y: at + half}})
		thin := draw.LineStyle{Color: color.Black, Width: vg.Points(1)}
		from, to := x(k.from), x(k.to)
		c.StrokeLine2(thin, from, at, to, at)
		for _, end := range []vg.Length{from, to} {
			c.StrokeLine2(thin, end, at-half/2, end, at+half/2)
		}
		c.FillText(label, vg.Point{X: to + vg.Points(4), Y: at}, short(number(k.ms)))
	}
}

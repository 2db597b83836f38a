package main

import (
	"math"
	"testing"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
)

func TestRun(t *testing.T) {
	if err := run("cpu:threads=2", 3000, 2); err != nil {
		t.Fatal(err)
	}
	if err := run("cpu", 1, 1); err == nil {
		t.Error("no error of one path")
	}
	if err := run("none", 10, 1); err == nil {
		t.Error("no error of a device that there is not")
	}
}

func open(t *testing.T, device string) *millrace.Device {
	t.Helper()
	dev, err := millrace.Open(device)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

const testPaths = 400_000

// TestPrices: the European call costs what the formula says, and the Asian one what the loop
// says, within four standard errors, in markets of several kinds.
func TestPrices(t *testing.T) {
	dev := open(t, "cpu")
	for _, m := range []market{today, {share: 90, strike: 90, rate: 0, volatility: 0.6, years: 2}, {share: 50, strike: 20, rate: 0.1, volatility: 0.05, years: 0.5}} {
		got, err := prices(dev, m, 7, testPaths)
		if err != nil {
			t.Fatal(err)
		}
		loop := loopPrices(m, 7, testPaths)
		formula := blackScholes(m).price
		for what, off := range map[string]float64{
			"European, the formula": (got[0].mean - formula) / got[0].err,
			"loop, the formula":     (loop[0].mean - formula) / loop[0].err,
			"Asian, the loop":       (got[1].mean - loop[1].mean) / math.Hypot(got[1].err, loop[1].err),
		} {
			if !(math.Abs(off) < 4) {
				t.Errorf("%+v: %s: off by %.1f standard errors: %v, %v, %.4f", m, what, off, got, loop, formula)
			}
		}
		for i := range got {
			if r := got[i].err / loop[i].err; !(r > 0.97 && r < 1.03) {
				t.Errorf("%+v: standard errors %v, %v", m, got[i], loop[i])
			}
		}
	}
}

// TestDerivatives: those of the European call are the formula's, and those of both are
// differences of prices of the same paths.
func TestDerivatives(t *testing.T) {
	dev := open(t, "cpu")
	formula := blackScholes(today)
	for i, asian := range []bool{false, true} {
		g, err := derivatives(dev, today, asian, 3, testPaths)
		if err != nil {
			t.Fatal(err)
		}
		price := func(change func(*market)) float64 {
			m := today
			change(&m)
			p, err := prices(dev, m, 3, testPaths)
			if err != nil {
				t.Fatal(err)
			}
			return p[i].mean
		}
		between := func(h float64, change func(m *market, h float64)) float64 {
			return (price(func(m *market) { change(m, h) }) - price(func(m *market) { change(m, -h) })) / (2 * h)
		}
		if p := price(func(*market) {}); math.Abs(g.price-p) > 1e-5*p {
			t.Errorf("price %v, beside %v", g.price, p)
		}
		for _, row := range []struct {
			what                     string
			got, difference, formula float64
		}{
			{"delta", g.delta, between(0.1, func(m *market, h float64) { m.share += h }), formula.delta},
			{"vega", g.vega, between(1e-3, func(m *market, h float64) { m.volatility += h }), formula.vega},
			{"rho", g.rho, between(1e-3, func(m *market, h float64) { m.rate += h }), formula.rho},
		} {
			if math.Abs(row.got/row.difference-1) > 0.01 {
				t.Errorf("asian %v: %s %.5f, by differences %.5f", asian, row.what, row.got, row.difference)
			}
			if !asian && math.Abs(row.got/row.formula-1) > 0.01 {
				t.Errorf("%s %.5f, by the formula %.5f", row.what, row.got, row.formula)
			}
		}
	}
}

// Options prices two options on a share by Monte Carlo, with how each price changes with the
// share's price, the volatility and the rate of interest: a European call, whose price a formula
// gives, too, and an Asian one, which pays by the mean of the share's price at twelve dates, and
// has none. It does so twice: by Millrace, and by a plain Go loop on all processors.
//
//	go run ./examples/options -paths 10000000
package main

import (
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
)

func main() {
	paths := flag.Int("paths", 10_000_000, "ways that the share's price may go")
	rounds := flag.Int("rounds", 3, "times to price by Millrace; the first one makes the code")
	device := flag.String("device", "cpu", "device and its options")
	flag.Parse()
	if err := run(*device, *paths, *rounds); err != nil {
		log.Fatal(err)
	}
}

// market has the numbers that prices of options depend on.
type market struct{ share, strike, rate, volatility, years float64 }

var today = market{share: 100, strike: 105, rate: 0.03, volatility: 0.25, years: 1}

// dates are how many prices an Asian option is the mean of.
const dates = 12

// greeks are a price's derivatives by the share's price (delta), the volatility (vega) and the
// rate (rho).
type greeks struct{ price, delta, vega, rho float64 }

func run(device string, paths, rounds int) error {
	if paths < 2 {
		return fmt.Errorf("%d paths: at least 2", paths)
	}
	dev, err := millrace.Open(device)
	if err != nil {
		return err
	}
	defer dev.Close()
	formula := blackScholes(today)
	fmt.Printf("European call, by the formula: %.4f, delta %.4f, vega %.3f, rho %.3f\n", formula.price, formula.delta, formula.vega, formula.rho)
	for i := range rounds {
		start := time.Now()
		p, err := prices(dev, today, uint64(i+1), paths)
		if err != nil {
			return err
		}
		fmt.Printf("Millrace  %7.3f s  European %s  Asian %s\n", time.Since(start).Seconds(), p[0], p[1])
	}
	start := time.Now()
	p, err := derivatives(dev, today, true, 1, paths)
	if err != nil {
		return err
	}
	fmt.Printf("Millrace  %7.3f s  Asian %.4f, delta %.4f, vega %.3f, rho %.3f\n", time.Since(start).Seconds(), p.price, p.delta, p.vega, p.rho)
	start = time.Now()
	loop := loopPrices(today, 1, paths)
	fmt.Printf("Go loop   %7.3f s  European %s  Asian %s\n", time.Since(start).Seconds(), loop[0], loop[1])
	return nil
}

// estimate is a mean over paths, and its standard error.
type estimate struct{ mean, err float64 }

// estimated is by the mean and the mean square of what paths pay.
func estimated(mean, square float64, paths int) estimate {
	return estimate{mean, math.Sqrt(max(square-mean*mean, 0) / float64(paths-1))}
}

func (e estimate) String() string { return fmt.Sprintf("%.4f ± %.4f", e.mean, e.err) }

// payoffs are what a European and an Asian call pay in each path, (paths), in today's money. The
// logarithm of the share's price moves by a normal number from date to date.
func payoffs(p millrace.Place, m market, share, volatility, rate *millrace.Tensor, seed uint64, paths int) (european, asian *millrace.Tensor) {
	step := m.years / dates
	drift := rate.Sub(volatility.Square().MulScalar(0.5)).MulScalar(step)
	spread := volatility.MulScalar(math.Sqrt(step))
	seeds := millrace.NewGenerator(seed)
	x, price, sum := share.Log(), share, millrace.ZerosOn(p, share.DType())
	for range dates {
		z := millrace.NormalOn(p, share.DType(), seeds.Seed(), paths)
		x = x.Add(drift).Add(z.Mul(spread))
		price = x.Exp()
		sum = sum.Add(price)
	}
	discount := rate.MulScalar(-m.years).Exp()
	european = price.SubScalar(m.strike).Relu().Mul(discount)
	asian = sum.DivScalar(dates).SubScalar(m.strike).Relu().Mul(discount)
	return european, asian
}

// inputs are a market's numbers that derivatives are taken by.
func inputs(p millrace.Place, m market) []*millrace.Tensor {
	number := func(x float64) *millrace.Tensor { return millrace.FullOn(p, millrace.Float32, x) }
	return []*millrace.Tensor{number(m.share), number(m.volatility), number(m.rate)}
}

// prices of both options, by the means of what they pay and of its square: all paths are
// computed and added up in one pass. The first runs also write what each path pays to memory, if
// it fits, in case the program reads it again.
func prices(dev *millrace.Device, m market, seed uint64, paths int) (p [2]estimate, err error) {
	err = dev.Scope(func(sc *millrace.Scope) error {
		in := inputs(sc, m)
		european, asian := payoffs(sc, m, in[0], in[1], in[2], seed, paths)
		means := millrace.Stack(0, european.Mean(), european.Square().Mean(), asian.Mean(), asian.Square().Mean())
		v, err := millrace.Values[float32](means)
		if err != nil {
			return err
		}
		for i := range p {
			p[i] = estimated(float64(v[2*i]), float64(v[2*i+1]), paths)
		}
		return nil
	})
	return p, err
}

// derivatives of the Asian option's price, or of the European one's: of each path's payoff by
// the chain rule, and the mean of those.
func derivatives(dev *millrace.Device, m market, asian bool, seed uint64, paths int) (g greeks, err error) {
	err = dev.Scope(func(sc *millrace.Scope) error {
		price, grads, err := autodiff.ValueAndGrad(func(in []*millrace.Tensor) *millrace.Tensor {
			pays, mean := payoffs(sc, m, in[0], in[1], in[2], seed, paths)
			if asian {
				pays = mean
			}
			return pays.Mean()
		}, inputs(sc, m)...)
		if err != nil {
			return err
		}
		v, err := millrace.Values[float32](millrace.Stack(0, append(grads, price)...))
		if err != nil {
			return err
		}
		g = greeks{delta: float64(v[0]), vega: float64(v[1]), rho: float64(v[2]), price: float64(v[3])}
		return nil
	})
	return g, err
}

// blackScholes is the European call's price in closed form.
func blackScholes(m market) greeks {
	root := m.volatility * math.Sqrt(m.years)
	d1 := (math.Log(m.share/m.strike) + (m.rate+m.volatility*m.volatility/2)*m.years) / root
	below := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	paid := m.strike * math.Exp(-m.rate*m.years)
	return greeks{
		price: m.share*below(d1) - paid*below(d1-root),
		delta: below(d1),
		vega:  m.share * math.Sqrt(m.years) * math.Exp(-d1*d1/2) / math.Sqrt(2*math.Pi),
		rho:   m.years * paid * below(d1-root),
	}
}

// loopPrices is prices as a plain loop, with each processor at a part of the paths.
func loopPrices(m market, seed uint64, paths int) (p [2]estimate) {
	workers := runtime.GOMAXPROCS(0)
	sums := make([][4]float64, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { sums[w] = loop(m, rand.New(rand.NewPCG(seed, uint64(w))), (w+1)*paths/workers-w*paths/workers) })
	}
	wg.Wait()
	var sum [4]float64
	for _, s := range sums {
		for i := range sum {
			sum[i] += s[i]
		}
	}
	for i := range p {
		p[i] = estimated(sum[2*i]/float64(paths), sum[2*i+1]/float64(paths), paths)
	}
	return p
}

// loop adds up what both options pay, and the squares of that.
func loop(m market, r *rand.Rand, paths int) (sums [4]float64) {
	step := m.years / dates
	drift := (m.rate - m.volatility*m.volatility/2) * step
	spread := m.volatility * math.Sqrt(step)
	first, discount := math.Log(m.share), math.Exp(-m.rate*m.years)
	for range paths {
		x, price, sum := first, 0.0, 0.0
		for range dates {
			x += drift + spread*r.NormFloat64()
			price = math.Exp(x)
			sum += price
		}
		for i, last := range [2]float64{price, sum / dates} {
			pays := discount * max(last-m.strike, 0)
			sums[2*i] += pays
			sums[2*i+1] += pays * pays
		}
	}
	return sums
}

// Neighbours finds, for each query, the nearest of many points by squared distance. It
// does so twice: by a plain Go loop, and by the same computation in Millrace.
//
//	go run ./examples/neighbours -queries 2000 -points 20000 -size 128
package main

import (
	"flag"
	"fmt"
	"log"
	"math"
	"time"

	"github.com/millrace-go/millrace"
)

func main() {
	queries := flag.Int("queries", 2000, "queries")
	points := flag.Int("points", 20000, "points to search")
	size := flag.Int("size", 128, "coordinates of a point")
	rounds := flag.Int("rounds", 3, "searches by Millrace; the first one makes the code")
	flag.Parse()
	if err := run(*queries, *points, *size, *rounds); err != nil {
		log.Fatal(err)
	}
}

func run(queries, points, size, rounds int) error {
	q := millrace.Uniform(millrace.Float32, 1, queries, size)
	p := millrace.Uniform(millrace.Float32, 2, points, size)
	qs, err := millrace.Values[float32](q)
	if err != nil {
		return err
	}
	ps, err := millrace.Values[float32](p)
	if err != nil {
		return err
	}

	start := time.Now()
	want := loop(qs, ps, size)
	fmt.Printf("Go loop   %8.3f s\n", time.Since(start).Seconds())
	for range rounds {
		start = time.Now()
		got, err := millrace.Values[int64](nearest(q, p))
		if err != nil {
			return err
		}
		fmt.Printf("Millrace  %8.3f s\n", time.Since(start).Seconds())
		if i := differs(got, want, qs, ps, size); i >= 0 {
			return fmt.Errorf("query %d: point %d is nearest, Millrace found %d", i, want[i], got[i])
		}
	}
	return nil
}

// loop gives the index of the nearest point for each query.
func loop(queries, points []float32, size int) []int64 {
	best := make([]int64, len(queries)/size)
	for i := range best {
		least := float32(math.Inf(1))
		for j := range len(points) / size {
			var sum float32
			for k := range size {
				d := queries[i*size+k] - points[j*size+k]
				sum += d * d
			}
			if sum < least {
				least, best[i] = sum, int64(j)
			}
		}
	}
	return best
}

// nearest does the same: |q-p|² = |q|² - 2q·p + |p|², and the first term is the same for all points.
func nearest(queries, points *millrace.Tensor) *millrace.Tensor {
	return points.Square().Sum(1).Sub(queries.MatMul(points.T()).MulScalar(2)).ArgMin(1)
}

// differs finds a query for which another point was found that is not as near. The two ways
// round differently, so that points at nearly the same distance may take each other's place.
func differs(got, want []int64, q, p []float32, size int) int {
	distance := func(i int, j int64) (sum float64) {
		for k := range size {
			d := float64(q[i*size+k]) - float64(p[int(j)*size+k])
			sum += d * d
		}
		return sum
	}
	for i := range want {
		if got[i] != want[i] && distance(i, got[i]) > distance(i, want[i])*(1+1e-5)+1e-4 {
			return i
		}
	}
	return -1
}

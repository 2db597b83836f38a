// Kmeans groups points of the plane around centres: Lloyd's iterations, until no point
// changes its group.
//
//	go run ./examples/kmeans -points 100000 -groups 8
package main

import (
	"flag"
	"fmt"
	"log"

	"github.com/millrace-go/millrace"
)

func main() {
	points := flag.Int("points", 10000, "points to group")
	groups := flag.Int("groups", 5, "groups to make")
	flag.Parse()
	centres, rounds, err := run(*points, *groups)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("after %d rounds the centres are\n%.2f\n", rounds, centres)
}

// run draws points around as many places as there are groups, and finds the places.
func run(n, groups int) (centres *millrace.Tensor, rounds int, err error) {
	draw := millrace.NewGenerator(1)
	places := millrace.Uniform(millrace.Float32, draw.Seed(), groups, 2).MulScalar(20)
	of := millrace.Integers(millrace.Int32, draw.Seed(), 0, int64(groups), n)
	points := places.Take(of, 0).Add(millrace.Normal(millrace.Float32, draw.Seed(), n, 2).MulScalar(0.3))

	centres = first(points, groups)
	group := millrace.Full(millrace.Int32, -1, n)
	for {
		next := distances(points, centres).ArgMin(1)
		same, err := millrace.Equal(next, group)
		if err != nil || same {
			return centres, rounds, err
		}
		group = next
		// Sums and counts of each group; one that lost all its points keeps its centre.
		member := group.OneHot(millrace.Float32, groups)
		count := member.SumKeep(0).T()
		mean := member.T().MatMul(points).Div(count.MaximumScalar(1))
		centres = millrace.Where(count.GtScalar(0), mean, centres)
		rounds++
	}
}

// distances are the squared ones of each point to each centre, of shape (n, groups).
func distances(points, centres *millrace.Tensor) *millrace.Tensor {
	return points.Unsqueeze(1).Sub(centres.Unsqueeze(0)).Square().Sum(2)
}

// first takes points that are far from one another: each is the farthest from those
// before it.
func first(points *millrace.Tensor, groups int) *millrace.Tensor {
	centres := points.Slice(millrace.R(0, 1))
	for range groups - 1 {
		far := distances(points, centres).Min(1).ArgMax(0)
		centres = millrace.Concat(0, centres, points.Take(far.Unsqueeze(0), 0))
	}
	return centres
}

// Physics computes two things that change with time: how heat spreads in a plate, and
// how bodies move that attract each other. Each step is ordinary code, and one or a few
// kernels.
//
//	go run ./examples/physics -size 256 -bodies 500
package main

import (
	"flag"
	"fmt"
	"log"

	"github.com/millrace-go/millrace"
)

func main() {
	size := flag.Int("size", 128, "points of the plate along a side")
	bodies := flag.Int("bodies", 200, "bodies")
	steps := flag.Int("steps", 200, "steps of either")
	flag.Parse()
	plate := heat(*size, *steps)
	mean, err := millrace.Item[float32](plate.Mean())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("the plate, whose middle was at 100 degrees, is at %.2f on average and in the middle at %.2f\n", mean, at(plate, *size/2, *size/2))
	w := newWorld(*bodies)
	before := w.energy()
	for range *steps {
		w.step(1e-3)
	}
	fmt.Printf("the bodies' energy was %.5f and is %.5f\n", before, w.energy())
}

func at(plate *millrace.Tensor, i, j int) *millrace.Tensor {
	return plate.Slice(millrace.At(i), millrace.At(j))
}

// heat is a plate after so many steps of the heat equation, whose border stays at 0 degrees
// and whose middle begins at 100.
func heat(size, steps int) *millrace.Tensor {
	mid := millrace.R(size/4, size-size/4)
	plate := millrace.Zeros(millrace.Float32, size, size).AssignScalar(100, mid, mid)
	const rate = 0.2 // times the time step, by the distance of points squared: below 1/4
	in, before, behind := millrace.R(1, size-1), millrace.R(0, size-2), millrace.R(2, size)
	for range steps {
		here := plate.Slice(in, in)
		around := plate.Slice(before, in).Add(plate.Slice(behind, in)).Add(plate.Slice(in, before)).Add(plate.Slice(in, behind))
		plate.Set(plate.Assign(here.Add(around.Sub(here.MulScalar(4)).MulScalar(rate)), in, in))
	}
	return plate
}

// world is bodies of mass 1/n: their places and velocities, of shape (n, 3).
type world struct {
	n           int
	place, move *millrace.Tensor
}

func newWorld(n int) *world {
	place := millrace.Normal(millrace.Float64, 1, n, 3)
	move := millrace.Normal(millrace.Float64, 2, n, 3).MulScalar(0.3)
	return &world{n, place, move.Sub(move.MeanKeep(0))}
}

// soft keeps the attraction of bodies that meet finite.
const soft = 0.05

// apart is from each body to each: the ways, of shape (n, n, 3), and the distances.
func (w *world) apart() (ways, distances *millrace.Tensor) {
	ways = w.place.Unsqueeze(0).Sub(w.place.Unsqueeze(1))
	return ways, ways.Square().SumKeep(2).AddScalar(soft * soft).Sqrt()
}

// pull is how the bodies' velocities change.
func (w *world) pull() *millrace.Tensor {
	ways, distances := w.apart()
	return ways.Div(distances.PowInt(3)).Sum(1).MulScalar(1 / float64(w.n))
}

// step goes on by dt, in leaps that keep the energy: half a pull, a move, half a pull.
func (w *world) step(dt float64) {
	half := w.move.Add(w.pull().MulScalar(dt / 2))
	w.place.Set(w.place.Add(half.MulScalar(dt)))
	w.move.Set(half.Add(w.pull().MulScalar(dt / 2)))
}

// energy is that of motion and that of attraction, as a tensor: it is computed when it is
// looked at.
func (w *world) energy() *millrace.Tensor {
	mass := 1 / float64(w.n)
	_, distances := w.apart()
	motion := w.move.Square().Sum().MulScalar(mass / 2)
	apart := distances.Squeeze(2).Recip().Triu(1).Sum().MulScalar(mass * mass)
	return motion.Sub(apart)
}

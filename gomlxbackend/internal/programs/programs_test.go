package main

import (
	"math"
	"testing"

	"github.com/gomlx/compute"
	"github.com/millrace-go/millrace/gomlxbackend"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
)

// steps are what a program's steps of these sizes print.
func steps(t *testing.T, p program, config string, sizes []int) ([]float64, compute.Backend) {
	t.Helper()
	b, err := compute.NewWithConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Finalize)
	s, err := p.start(b)
	if err != nil {
		t.Fatalf("%s on %s: %v", p.name, config, err)
	}
	defer s.close()
	var list []float64
	for _, size := range sizes {
		l, err := s.step(size)
		if err != nil {
			t.Fatalf("%s on %s: %v", p.name, config, err)
		}
		list = append(list, l)
	}
	return list, b
}

// Every program gives the numbers that it gives on the Go backend, at a size that comes
// again and at new ones, and no segment of it is too much for a device: none runs op by op.
func TestPrograms(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			sizes := []int{p.small, p.small, p.small, p.small + 1, p.small + 2}
			want, _ := steps(t, p, "go:ops_sequential", sizes)
			got, b := steps(t, p, "millrace:cpu", sizes)
			for i, w := range want {
				if d := math.Abs(got[i] - w); !(d <= 1e-3*(1+math.Abs(w))) {
					t.Errorf("step %d is %v, with the Go backend %v", i, got[i], w)
				}
			}
			dev := b.(*gomlxbackend.Backend).Device()
			if s := dev.Stats(); s.Unbuilt != 0 || s.Fallbacks != 0 || s.Ops == 0 {
				t.Errorf("%d plans that cannot be built, %d segments that fell back; %d ops", s.Unbuilt, s.Fallbacks, s.Ops)
			}
		})
	}
}

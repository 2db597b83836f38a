package millrace_test

import (
	"bytes"
	"fmt"

	"github.com/millrace-go/millrace"
)

// score is the part of a program whose first run should be fast.
func score(p millrace.Place) ([]float64, error) {
	x := millrace.FromSliceOn(p, []float64{3, 1, 2, 5}, 2, 2)
	return millrace.Values[float64](x.Sub(x.MeanKeep(1)).Square().Sum(1).Sqrt())
}

// record runs score and exports its plans. A build step of the program would do the same, and write
// a file that the program embeds.
func record() (bundle []byte, err error) {
	dev, err := millrace.Open("cpu")
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	if _, err := score(dev); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	err = millrace.ExportPlans(&buf, millrace.PlanFilter{Device: "cpu"})
	return buf.Bytes(), err
}

func ExampleExportPlans() {
	bundle, err := record()
	fmt.Println(len(bundle) > 0, err)
	// Output: true <nil>
}

// A program embeds the file that ExportPlans wrote:
//
//	//go:embed app.plans
//	var plans []byte
func ExampleUsePlans() {
	plans, err := record()
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := millrace.UsePlans(plans); err != nil {
		fmt.Println("starting slowly:", err)
	}
	dev, err := millrace.Open("cpu:cache=off")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	v, err := score(dev)
	s := dev.Stats()
	fmt.Println(v, err)
	fmt.Println(s.Explorations, "explorations,", s.Cache.Bundled, "plans from the bundle")
	// Output:
	// [1.4142135623730951 2.1213203435596424] <nil>
	// 0 explorations, 1 plans from the bundle
}

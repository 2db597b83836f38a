package main

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/millrace-go/millrace/bench/peers/internal/talk"
)

// The test binary is every contestant: this variable says how it behaves.
const behaviour = "PEERS_TEST_CONTESTANT"

func TestMain(m *testing.M) {
	how := os.Getenv(behaviour)
	if how == "" {
		os.Exit(m.Run())
	}
	if len(os.Args) > 1 && os.Args[1] == "-versions" {
		if how == "missing" {
			fmt.Fprintln(os.Stderr, "Traceback\nthere is no module called fake")
			os.Exit(1)
		}
		fmt.Println(`{"fake":"1.2.3"}`)
		return
	}
	f := fake{how: how}
	if err := talk.Serve(os.Stdin, os.Stdout, f.prepare); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fake sums all elements, in one of many ways.
type fake struct {
	how  string
	runs int
}

func (f *fake) prepare(w talk.Work) (*talk.Program, error) {
	switch f.how {
	case "unsupported":
		return nil, talk.Unsupported("it has no sums")
	case "dies at once":
		fmt.Fprintln(os.Stderr, "no room")
		os.Exit(3)
	}
	x, err := talk.ReadFloats(w.Inputs[0].File)
	if err != nil {
		return nil, err
	}
	return &talk.Program{
		Run:   func(int) (float64, error) { return f.run() },
		Write: func(file string) (int, error) { return f.write(file, x) },
	}, nil
}

func (f *fake) run() (float64, error) {
	f.runs++
	if f.runs > 2 { // warm-up is over
		switch f.how {
		case "dies":
			fmt.Fprintln(os.Stderr, "an illegal instruction")
			os.Exit(4)
		case "hangs":
			fmt.Fprintln(os.Stderr, "waiting for nothing")
			time.Sleep(time.Hour)
		case "chatters":
			fmt.Println("progress: 50 %")
		case "complains":
			return 0, errors.New("out of memory")
		case "has no clock":
			return 0, nil
		}
	}
	return map[string]float64{"slow": 0.004}[f.how] + 0.002, nil
}

func (f *fake) write(file string, x []float32) (int, error) {
	sum := 0.0
	for _, v := range x {
		sum += float64(v)
	}
	y := []float32{float32(sum)}
	switch f.how {
	case "wrong":
		y[0] *= 1.001
	case "nan":
		y[0] -= y[0]
		y[0] /= y[0]
	case "long":
		y = append(y, 0)
	}
	return len(y), talk.WriteFloats(file, y)
}

// fakes are contestants that behave so.
func fakes(t *testing.T, behaviours ...string) []contestant {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var list []contestant
	for _, how := range behaviours {
		list = append(list, contestant{
			name: how, ours: how == "ours", command: []string{self}, probe: []string{"-versions"},
			env: append(os.Environ(), behaviour+"="+how),
		})
	}
	return list
}

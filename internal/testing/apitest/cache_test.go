package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/machine"
)

// Environment variables of a child of TestSecondProcess: chainSpec names the device to run the
// chain on, chainUses a bundle to use and chainExports one to write.
const (
	chainSpec    = "APITEST_CHAIN"
	chainUses    = "APITEST_CHAIN_USES"
	chainExports = "APITEST_CHAIN_EXPORTS"
)

// chainLen, another variable, is the vector's number of elements.
const chainLen = "APITEST_CHAIN_LEN"

// productLen is the length from which the chain ends in a product of matrices, which can run in
// several ways.
const productLen = 20000

// chainReport is the output of such a child.
type chainReport struct {
	Values     []float32
	Stats      millrace.Stats
	Open       time.Duration // of the device
	First, Hot time.Duration // of a run of the chain
}

// chain40 is 40 ops on one vector: arithmetic, functions and scalars.
func chain40(x *millrace.Tensor) *millrace.Tensor {
	y := x
	for range 8 {
		y = y.MulScalar(0.9).AddScalar(0.1).Tanh().Mul(x).Abs()
	}
	return y
}

// runChain runs the chain as a program does for the first time, and then again.
func runChain(spec string, n int) (r chainReport, err error) {
	begin := time.Now()
	if file := os.Getenv(chainUses); file != "" {
		bundle, err := os.ReadFile(file)
		if err != nil {
			return r, err
		}
		if err := millrace.UsePlans(bundle); err != nil {
			return r, err
		}
	}
	dev, err := millrace.Open(spec)
	if err != nil {
		return r, err
	}
	defer dev.Close()
	r.Open = time.Since(begin)
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(i%1000)/500 - 1
	}
	var times []time.Duration
	for range 200_000 / n {
		begin := time.Now()
		err := dev.NewStream().Scope(func(sc *millrace.Scope) error {
			x := millrace.FromSliceOn(sc, data, len(data))
			y := chain40(x)
			if n >= productLen {
				y = y.Reshape(n/100, 100).MatMul(x.Reshape(100, n/100))
			}
			r.Values, err = millrace.Values[float32](y)
			return err
		})
		if err != nil {
			return r, err
		}
		times = append(times, time.Since(begin))
	}
	r.First = times[0]
	slices.Sort(times)
	r.Hot = times[len(times)/2]
	err = dev.Wait()
	r.Stats = dev.Stats()
	if file := os.Getenv(chainExports); file != "" && err == nil {
		var buf bytes.Buffer
		if err = millrace.ExportPlans(&buf, millrace.PlanFilter{}); err == nil {
			err = os.WriteFile(file, buf.Bytes(), 0o666)
		}
	}
	return r, err
}

// process runs the chain in another process.
func process(t *testing.T, spec string, env ...string) chainReport {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestSecondProcess$")
	cmd.Env = append(append(os.Environ(), chainSpec+"="+spec), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var r chainReport
	_, text, _ := strings.Cut(string(out), "report ")
	text, _, _ = strings.Cut(text, "\n")
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return r
}

// TestSecondProcess: a process that repeats another process's program explores nothing and compiles
// nothing, and computes the same.
func TestSecondProcess(t *testing.T) {
	if spec := os.Getenv(chainSpec); spec != "" {
		r, err := runChain(spec, count(t, chainLen, 1000))
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("report %s\n", text)
		return
	}
	for _, spec := range []string{"cpu:compile=off", "cpu:compile=wait", "cpu:compile=c,tier=1", "cpu"} {
		t.Run(strings.ReplaceAll(spec, ",", " "), func(t *testing.T) {
			sep := ","
			if !strings.Contains(spec, ":") {
				sep = ":"
			}
			at := spec + sep + "cache=" + t.TempDir() // which is named after the test
			cold, warm, off := process(t, at), process(t, at), process(t, spec+sep+"cache=off")
			if cold.Stats.Explorations == 0 || cold.Stats.Cache.Written == 0 || off.Stats.Explorations != cold.Stats.Explorations {
				t.Errorf("cold: %+v; without: %+v", cold.Stats, off.Stats)
			}
			s := warm.Stats
			if s.Explorations != 0 || s.Runtime.Compiles != 0 || s.Runtime.CompileFails != 0 || s.Cache.Written+s.Cache.Damaged+s.Cache.Refused+s.Cache.Failed != 0 || s.PlanHits != s.Segments {
				t.Errorf("warm: %+v", s)
			}
			if s.Cache.Misses != 0 {
				t.Errorf("warm: %d misses", s.Cache.Misses)
			}
			if off.Stats.Cache != (millrace.Stats{}).Cache {
				t.Errorf("off: %+v", off.Stats.Cache)
			}
			if !slices.Equal(cold.Values, warm.Values) || !slices.Equal(cold.Values, off.Values) {
				t.Error("values differ with and without cache")
			}
			t.Logf("cold: open %v first %v hot %v; warm: open %v first %v hot %v, %d explorations, %d compiles, reading took %v",
				cold.Open, cold.First, cold.Hot, warm.Open, warm.First, warm.Hot, s.Explorations, s.Runtime.Compiles, time.Duration(s.Cache.ReadNanos))
		})
	}
}

// TestSecondProcessTunesNothing: the next process knows the timings of the first, and both give the
// values of a process without tuning.
func TestSecondProcessTunesNothing(t *testing.T) {
	if machine.Level() == machine.None {
		t.Skip("products in Go know one way")
	}
	long := fmt.Sprint(chainLen, "=", productLen)
	for name, spec := range map[string]string{"background": "cpu:threads=2", "compiled": "cpu:compile=wait,threads=2"} {
		t.Run(name, func(t *testing.T) {
			at := spec + ",tune=wait,cache=" + t.TempDir()
			cold, warm, off := process(t, at, long), process(t, at, long), process(t, spec+",tune=off,cache=off", long)
			if cold.Stats.Tunings == 0 || cold.Stats.TuneNanos == 0 || off.Stats.Tunings != 0 {
				t.Errorf("cold: %d tunings, %d ns; off: %d", cold.Stats.Tunings, cold.Stats.TuneNanos, off.Stats.Tunings)
			}
			s := warm.Stats
			if s.Tunings != 0 || s.TuneNanos != 0 || s.Explorations != 0 || s.Runtime.Compiles != 0 || s.Cache.Written+s.Cache.Damaged+s.Cache.Refused+s.Cache.Failed != 0 {
				t.Errorf("warm: %+v", s)
			}
			if !slices.Equal(cold.Values, warm.Values) || !slices.Equal(cold.Values, off.Values) {
				t.Error("values differ with and without tuning")
			}
			t.Logf("cold: %d tunings in %v; first %v, hot %v; warm: first %v hot %v; off: hot %v", cold.Stats.Tunings,
				time.Duration(cold.Stats.TuneNanos), cold.First, cold.Hot, warm.First, warm.Hot, off.Hot)
		})
	}
}

// TestProcessesTogether: processes that start on an empty cache at once do not disturb each other.
func TestProcessesTogether(t *testing.T) {
	spec := "cpu:compile=wait,cache=" + t.TempDir()
	reports := make([]chainReport, 3)
	var all sync.WaitGroup
	for i := range reports {
		all.Go(func() { reports[i] = process(t, spec) })
	}
	all.Wait()
	for _, r := range reports {
		if c := r.Stats.Cache; c.Damaged+c.Refused+c.Failed != 0 || !slices.Equal(r.Values, reports[0].Values) {
			t.Errorf("%+v", c)
		}
	}
	if s := process(t, spec).Stats; s.Explorations != 0 || s.Runtime.Compiles != 0 {
		t.Errorf("afterwards: %d explorations, %d compiles", s.Explorations, s.Runtime.Compiles)
	}
}

// TestCacheOfTheEnvironment: MILLRACE_CACHE moves the cache of devices without a cache option, and
// off disables it: then nothing is read or written.
func TestCacheOfTheEnvironment(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	at := func(cache string) chainReport {
		t.Helper()
		return process(t, "cpu:compile=off", "MILLRACE_CACHE="+cache, "XDG_CACHE_HOME="+home, "HOME="+home)
	}
	files := func(dir string) (n int) {
		t.Helper()
		if err := filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				n++
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	off := at("off")
	if c := off.Stats.Cache; c != (millrace.Stats{}).Cache || files(home) != 0 {
		t.Errorf("off: %+v, %d files", c, files(home))
	}
	moved := at(dir)
	if c := moved.Stats.Cache; c.Written == 0 || files(home) != 0 || int64(files(dir)) != c.Written {
		t.Errorf("moved: %+v, %d files there, %d in the usual place", c, files(dir), files(home))
	}
	if again := at(dir); again.Stats.Explorations != 0 || !slices.Equal(again.Values, off.Values) {
		t.Errorf("again: %d explorations", again.Stats.Explorations)
	}
}

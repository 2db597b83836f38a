package files

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// child is the variable that makes the test program a process of a job.
const child = "MILLRACE_TEST_FILES"

func TestMain(m *testing.M) {
	if spec := os.Getenv(child); spec != "" {
		f := strings.Split(spec, "|") // part, parts, out, inputs
		part, _ := strconv.Atoi(f[0])
		parts, _ := strconv.Atoi(f[1])
		_, err := Run(context.Background(), Job{In: f[3:], Out: f[2], Part: part, Parts: parts, Retries: 1000}, func(ctx context.Context, in string, w io.Writer) error {
			time.Sleep(time.Millisecond)
			defer time.Sleep(time.Millisecond)
			return reverse(ctx, in, w)
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestKilled: processes of two parts are killed at random moments and started again, until one of each
// part ends by itself. Then every output is there, whole, and nothing else.
func TestKilled(t *testing.T) {
	names, out := inputs(t, 60), t.TempDir()
	kills := 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	for part := range 2 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(part), 7))
			for try := 0; ; try++ {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), child+"="+strings.Join(append([]string{strconv.Itoa(part), "2", out}, names...), "|"))
				var stderr strings.Builder
				cmd.Stderr = &stderr
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				if try < 8 { // later ones may end
					time.Sleep(time.Duration(rng.IntN(40)) * time.Millisecond)
					_ = cmd.Process.Kill()
				}
				err := cmd.Wait()
				if err == nil {
					return
				}
				if stderr.Len() > 0 || try >= 8 {
					t.Errorf("part %d: %v, %s", part, err, stderr.String())
					return
				}
				mu.Lock()
				kills++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("%d kills", kills)
	// A process that was killed late has left a temporary file.
	if sum, err := Run(nil, Job{In: names, Out: out, Retries: 1000}, reverse); err != nil || sum.Before != len(names) {
		t.Errorf("%+v, %v", sum, err)
	}
	complete(t, names, out)
}

//go:build unix

package plancache

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// hammerDir is the environment variable that gives a child process of TestHammer its directory.
const hammerDir = "PLANCACHE_HAMMER_DIR"

// hammerValue returns the value for a key. Every process writes the same value, so readers can check
// it.
func hammerValue(key int) []byte {
	r := rand.New(rand.NewPCG(uint64(key), 0))
	v := make([]byte, 1+r.IntN(60_000))
	for i := range v {
		v[i] = byte(r.Uint32())
	}
	return v
}

// hammerChild writes and reads until it is killed. It prints each key for which Put has returned.
func hammerChild(dir string) {
	c, err := Open(dir, Options{})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	for {
		key := rand.IntN(400)
		if v, ok := c.Get("plan", fmt.Sprint(key)); ok {
			if !bytes.Equal(v, hammerValue(key)) {
				fmt.Println("error: entry", key, "holds something else")
			}
			if rand.IntN(4) > 0 {
				continue
			}
		}
		if err := c.Put("plan", fmt.Sprint(key), hammerValue(key)); err != nil {
			fmt.Println("error", err)
		}
		fmt.Println("done", key)
		if s := c.Stats(); s.Damaged+s.Failed+s.Evicted > 0 {
			fmt.Printf("error: %+v\n", s)
		}
	}
}

// TestHammer lets eight processes use one cache heavily and kills them at random moments. No
// complete entry is lost, and no wrong value is ever read. HAMMER is the duration, a second by
// default.
func TestHammer(t *testing.T) {
	if dir := os.Getenv(hammerDir); dir != "" {
		hammerChild(dir)
		return
	}
	long := time.Second
	if s := os.Getenv("HAMMER"); s != "" {
		var err error
		if long, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	stop := time.Now().Add(long)
	var mu sync.Mutex
	done := map[string]bool{}
	kills := 0
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for time.Now().Before(stop) {
				cmd := exec.Command(os.Args[0], "-test.run=^TestHammer$")
				cmd.Env = append(os.Environ(), hammerDir+"="+dir)
				out, err := cmd.StdoutPipe()
				if err == nil {
					err = cmd.Start()
				}
				if err != nil {
					t.Error(err)
					return
				}
				time.AfterFunc(time.Duration(50+rand.IntN(250))*time.Millisecond, func() { cmd.Process.Kill() })
				for lines := bufio.NewScanner(out); lines.Scan(); {
					line := lines.Text()
					if key, ok := strings.CutPrefix(line, "done "); ok {
						mu.Lock()
						done[key] = true
						mu.Unlock()
					} else if strings.HasPrefix(line, "error") {
						t.Error(line)
					}
				}
				cmd.Wait()
				mu.Lock()
				kills++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	c := openTest(t, dir, Options{})
	for key := range done {
		var n int
		fmt.Sscan(key, &n)
		if v, ok := c.Get("plan", key); !ok || !bytes.Equal(v, hammerValue(n)) {
			t.Errorf("entry %s: lost", key)
		}
	}
	files, err := c.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, err := c.Read(f.Name); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	if len(done) == 0 || kills < 8 {
		t.Errorf("%d entries written, %d processes killed", len(done), kills)
	}
	t.Logf("%d entries in %d files, %d processes killed", len(done), len(files), kills)
}

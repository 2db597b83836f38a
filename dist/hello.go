package dist

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/cespare/xxhash/v2"
)

// hashed is the hash of the file that this process runs.
var hashed struct {
	once sync.Once
	hash uint64
	err  error
}

func executable() (uint64, error) {
	hashed.once.Do(func() { hashed.hash, hashed.err = hashExecutable() })
	return hashed.hash, hashed.err
}

func hashExecutable() (uint64, error) {
	path, err := os.Executable()
	if err != nil {
		return 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	h := xxhash.New()
	_, err = f.WriteTo(h)
	return h.Sum64(), err
}

// hello tells all ranks the machine and the program of this one.
func (w *World) hello() (err error) {
	program, fault := w.o.program, error(nil)
	if program == "" {
		hash, err := executable()
		program, fault = fmt.Sprintf("the executable %016x for %s", hash, runtime.GOARCH), err
	}
	if fault != nil && w.o.AnyProgram {
		program, fault = "an executable that cannot be read", nil
	}
	text := w.info.Host + "\n" + program
	if fault != nil {
		text = w.info.Host + "\n" + fault.Error()
	}
	heads, err := w.heads(head{text: uint32(len(text)), failed: fault != nil})
	if err != nil {
		return err
	}
	texts, err := w.texts(heads, text)
	if err != nil {
		return err
	}
	hosts, programs := make([]string, len(texts)), make([]string, len(texts))
	for r, t := range texts {
		hosts[r], programs[r], _ = strings.Cut(t, "\n")
	}
	w.mu.Lock()
	w.names = hosts
	w.mu.Unlock()
	for r, h := range heads {
		if h.failed {
			return w.fail(&RankError{Rank: r, Host: hosts[r], State: Failed, Call: "open", Err: textError(programs[r])})
		}
	}
	if !w.o.AnyProgram && !equal(programs) {
		return w.fail(differ("open: " + who(programs, "runs", "run")))
	}
	return nil
}

// listen learns of SIGTERM, with which schedulers ask a job to stop. After the first signal the
// next one has its usual effect.
func (w *World) listen() {
	signals := make(chan os.Signal, 1)
	done := make(chan struct{})
	var once sync.Once
	signal.Notify(signals, syscall.SIGTERM)
	w.unnotify = func() { once.Do(func() { signal.Stop(signals); close(done) }) }
	go func() {
		select {
		case <-signals:
			w.asked.Store(true)
			w.unnotify()
		case <-done:
		}
	}()
}

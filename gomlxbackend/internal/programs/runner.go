package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/gomlxbackend"
)

// runner is one of those that are compared.
type runner interface {
	// start begins a program, on a new backend.
	start(p program) error
	// steps runs n of them and says how long they took.
	steps(size, n int) (time.Duration, error)
	// busy waits for what is made in the background, and counts it.
	busy() (made int64, err error)
	stop()
}

// local runs steps in this process.
type local struct {
	config  string
	backend compute.Backend
	session *session
}

func (l *local) start(p program) (err error) {
	if l.backend, err = compute.NewWithConfig(l.config); err != nil {
		return err
	}
	l.session, err = p.start(l.backend)
	return err
}

func (l *local) steps(size, n int) (time.Duration, error) {
	start := time.Now()
	for range n {
		if _, err := l.session.step(size); err != nil {
			return 0, fmt.Errorf("%s: %w", l.config, err)
		}
	}
	return time.Since(start), nil
}

// stats are the counters of the device; false where it is not Millrace's.
func (l *local) stats() (millrace.Stats, bool) {
	m, ok := l.backend.(*gomlxbackend.Backend)
	if !ok {
		return millrace.Stats{}, false
	}
	return m.Device().Stats(), true
}

func (l *local) busy() (int64, error) {
	m, ok := l.backend.(*gomlxbackend.Backend)
	if !ok {
		return 0, nil
	}
	if err := m.Device().Wait(); err != nil {
		return 0, err
	}
	s := m.Device().Stats()
	return s.Runtime.Compiles + s.Tunings + s.Explorations, nil
}

func (l *local) stop() {
	if l.session != nil {
		l.session.close()
	}
	if l.backend != nil {
		l.backend.Finalize()
	}
	l.session, l.backend = nil, nil
}

// remote runs steps in a process of another build, which serve answers for.
type remote struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// newRemote builds the program without SIMD and starts it.
func newRemote(dir, config string) (*remote, error) {
	bin := filepath.Join(dir, "plain")
	build := exec.Command("go", "build", "-o", bin, "github.com/millrace-go/millrace/gomlxbackend/internal/programs")
	build.Env = append(os.Environ(), "GOEXPERIMENT=nosimd")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building it without SIMD: %w\n%s", err, out)
	}
	r := &remote{cmd: exec.Command(bin, "-serve", config)}
	r.cmd.Stderr = os.Stderr
	var err error
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.out = bufio.NewReader(out)
	return r, r.cmd.Start()
}

func (r *remote) ask(format string, args ...any) (answer int64, err error) {
	if _, err := fmt.Fprintf(r.in, format+"\n", args...); err != nil {
		return 0, err
	}
	line, err := r.out.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("the build without SIMD: %w", err)
	}
	if _, err := fmt.Sscan(line, &answer); err != nil {
		return 0, fmt.Errorf("the build without SIMD: %s", strings.TrimSpace(line))
	}
	return answer, nil
}

func (r *remote) start(p program) error {
	_, err := r.ask("start\t%s", p.name)
	return err
}

func (r *remote) steps(size, n int) (time.Duration, error) {
	ns, err := r.ask("steps\t%d\t%d", size, n)
	return time.Duration(ns), err
}

func (r *remote) busy() (int64, error) { return r.ask("busy") }

func (r *remote) stop() { _, _ = r.ask("stop") } // the next start says what is wrong

// end ends the process.
func (r *remote) end() error {
	r.in.Close()
	return r.cmd.Wait()
}

// serve runs what a remote asks for.
func serve(config string, in io.Reader, out io.Writer) error {
	l := &local{config: config}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		answer, err := l.answer(strings.Split(lines.Text(), "\t"))
		if err != nil {
			fmt.Fprintln(out, "error:", strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		fmt.Fprintln(out, answer)
	}
	return lines.Err()
}

func (l *local) answer(words []string) (int64, error) {
	switch words[0] {
	case "start":
		for _, p := range programs {
			if p.name == words[1] {
				return 0, l.start(p)
			}
		}
		return 0, fmt.Errorf("no program %q", words[1])
	case "steps":
		var size, n int
		if _, err := fmt.Sscan(strings.Join(words[1:], " "), &size, &n); err != nil {
			return 0, err
		}
		took, err := l.steps(size, n)
		return int64(took), err
	case "busy":
		return l.busy()
	case "stop":
		l.stop()
		return 0, nil
	}
	return 0, fmt.Errorf("no request %q", words)
}

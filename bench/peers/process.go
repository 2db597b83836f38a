package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/millrace-go/millrace/bench/peers/internal/talk"
)

// A process is a contestant that runs.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string
	stderr *tail
	gone   bool            // it was ended, or ended
	quit   <-chan struct{} // closed where the user wants no more
}

// start runs a contestant's command.
func (c contestant) start(quit <-chan struct{}) (*process, error) {
	p := &process{cmd: exec.Command(c.command[0], c.command[1:]...), lines: make(chan string, 1), stderr: &tail{}, quit: quit}
	p.cmd.Env, p.cmd.Stderr, p.cmd.WaitDelay = c.env, p.stderr, 5*time.Second
	ownGroup(p.cmd)
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s := bufio.NewScanner(out)
		for s.Scan() {
			p.lines <- s.Text()
		}
		close(p.lines)
	}()
	return p, nil
}

// ask asks and waits for the answer. After an error the process is gone.
func (p *process) ask(q talk.Question, limit time.Duration) (talk.Answer, error) {
	var a talk.Answer
	line, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return a, p.fail("ended", stopPatience)
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case text, ok := <-p.lines:
		switch {
		case !ok:
			return a, p.fail("ended", stopPatience)
		case json.Unmarshal([]byte(text), &a) != nil:
			return a, p.fail(fmt.Sprintf("answered %.80q", text), 0)
		case a.Error != "":
			return a, p.fail(a.Error, 0)
		}
		return a, nil
	case <-p.quit:
		return a, p.fail("interrupted", 0)
	case <-timer.C:
		return a, p.fail(fmt.Sprintf("gave no answer for %v", limit), 0)
	}
}

// fail ends the process and says why, with what it wrote to standard error last.
// One that is ending has patience to do so.
func (p *process) fail(why string, patience time.Duration) error {
	if err := p.stop(patience); err != nil && why == "ended" {
		why = err.Error()
	}
	if text := p.stderr.String(); text != "" {
		why += "; it wrote: " + text
	}
	return errors.New(why)
}

// stopPatience is for processes that are ending by themselves.
const stopPatience = 5 * time.Second

// stop closes the process's input, and kills it where it does not end then.
func (p *process) stop(patience time.Duration) error {
	p.gone = true
	p.in.Close()
	timer := time.AfterFunc(patience, func() { killGroup(p.cmd) })
	defer timer.Stop()
	go func() {
		for range p.lines { // so that nobody waits for room
		}
	}()
	return p.cmd.Wait()
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 2000

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - tailSize; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}

//go:build unix

package gpuchild

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is the other process with its connections.
type process struct {
	cmd    *exec.Cmd
	in     *os.File // requests
	out    *os.File // replies
	shared []byte
	errors tail
	over   chan struct{} // closed after the process has ended
}

// start starts this program again. Its files, from number three on, are requests, replies and
// shared memory.
func start(driver string) (*process, error) {
	program := "/proc/self/exe" // works even if the file was replaced
	if _, err := os.Stat(program); err != nil {
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	p := &process{}
	shared, err := sharedFile()
	if err != nil {
		return nil, err
	}
	defer shared.Close()
	if p.shared, err = mapped(shared); err != nil {
		return nil, err
	}
	requests, in, err := os.Pipe()
	if err != nil {
		p.release()
		return nil, err
	}
	defer requests.Close()
	out, replies, err := os.Pipe()
	if err != nil {
		in.Close()
		p.release()
		return nil, err
	}
	defer replies.Close()
	p.in, p.out = in, out
	p.cmd = &exec.Cmd{
		Path:       program,
		Args:       os.Args[:min(len(os.Args), 1)], // a library in another language's program may have none
		Env:        append(os.Environ(), mark+"="+driver),
		Stderr:     &p.errors,
		ExtraFiles: []*os.File{requests, replies, shared},
		// Signals from a terminal to the program's group must not reach this process: it ends when
		// the program ends.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
		WaitDelay:   time.Second, // others may hold its standard error
	}
	if err := p.cmd.Start(); err != nil {
		in.Close()
		p.release()
		return nil, err
	}
	p.over = make(chan struct{})
	go func() {
		_ = p.cmd.Wait()
		// Its output is read at once. Other holders of the pipe's end may keep it open, such as
		// processes that it started before it served.
		_ = p.out.SetReadDeadline(time.Now().Add(time.Second))
		close(p.over)
	}()
	return p, nil
}

// attach opens, in the other process, the files that start passed to it.
func attach() (in, out *os.File, shared []byte, err error) {
	in, out = os.NewFile(3, "requests"), os.NewFile(4, "replies")
	mem := os.NewFile(5, "shared memory")
	for _, f := range []*os.File{in, out, mem} {
		if _, err := f.Stat(); err != nil {
			return nil, nil, nil, err
		}
		syscall.CloseOnExec(int(f.Fd()))
	}
	shared, err = mapped(mem)
	return in, out, shared, err
}

const sharedSize = slotSize * numSlots

// sharedDirs are candidate directories for shared memory, the best first.
var sharedDirs = func() []string { return []string{"/dev/shm", os.TempDir()} }

// sharedFile is an unnamed file with all its pages allocated: writing to a page without space would
// end the process.
func sharedFile() (*os.File, error) {
	var refused []error
	for _, dir := range sharedDirs() {
		f, err := os.CreateTemp(dir, "millrace-")
		if err == nil {
			os.Remove(f.Name())
			if err = reserve(f); err == nil {
				return f, nil
			}
			f.Close()
		}
		refused = append(refused, err)
	}
	return nil, fmt.Errorf("shared memory cannot be made: %w", errors.Join(refused...))
}

func reserve(f *os.File) error {
	zeros := make([]byte, slotSize)
	for range numSlots {
		if _, err := f.Write(zeros); err != nil {
			return err
		}
	}
	return nil
}

func mapped(f *os.File) ([]byte, error) {
	b, err := syscall.Mmap(int(f.Fd()), 0, sharedSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("shared memory cannot be made: %w", err)
	}
	return b, nil
}

// kill ends the process, unless it has ended.
func (p *process) kill() { _ = p.cmd.Process.Kill() }

// wait waits until the process has ended, and says how. No more replies arrive.
func (p *process) wait() string {
	p.kill()
	<-p.over
	p.out.Close()
	p.in.Close()
	how := "the system does not say how"
	if s := p.cmd.ProcessState; s != nil {
		how = s.String()
	}
	if text := p.errors.text(); text != "" {
		how += ": " + text
	}
	return how
}

// release frees the shared memory.
func (p *process) release() {
	_ = syscall.Munmap(p.shared)
	p.shared = nil
}

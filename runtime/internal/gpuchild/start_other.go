//go:build !unix

package gpuchild

import (
	"errors"
	"os"
)

type process struct {
	in, out *os.File
	shared  []byte
}

var errSystem = errors.New("isolate=on is for Unix systems")

func start(string) (*process, error) { return nil, errSystem }

func attach() (in, out *os.File, shared []byte, err error) { return nil, nil, nil, errSystem }

func (p *process) kill() {}

func (p *process) wait() string { return errSystem.Error() }

func (p *process) release() {}

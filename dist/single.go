package dist

import (
	"context"
	"os"
)

// single is the driver of a job of one rank, which no launcher started.
type single struct{ notes [][]byte }

func openSingle(context.Context) (Driver, error) { return &single{}, nil }

func (*single) Info() Info {
	host, _ := os.Hostname() // "" if the system does not say; only messages name it
	return Info{Size: 1, LocalSize: 1, Host: host, Library: "none"}
}

// finished is an operation that was complete when it began.
type finished struct{}

func (finished) Done() (bool, error) { return true, nil }

func (*single) AllToAll(_, _ []byte, _, _ []int) (Pending, error) { return finished{}, nil }

func (*single) AllGather(send, recv []byte, recvAt []int) (Pending, error) {
	copy(recv[recvAt[0]:recvAt[1]], send)
	return finished{}, nil
}

func (*single) Broadcast([]byte, int) (Pending, error) { return finished{}, nil }

func (s *single) Note(to int, text []byte) error {
	if to != 0 {
		return errSingle
	}
	s.notes = append(s.notes, append([]byte(nil), text...))
	return nil
}

func (s *single) Notes() (int, []byte, bool) {
	if len(s.notes) == 0 {
		return 0, nil, false
	}
	text := s.notes[0]
	s.notes = s.notes[1:]
	return 0, text, true
}

func (s *single) Poll() (bool, error) { return len(s.notes) > 0, nil }

func (*single) Abort(code int) { os.Exit(code) }

func (*single) Close() error { return nil }

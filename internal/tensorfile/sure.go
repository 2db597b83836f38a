package tensorfile

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Unknown is the size of a stream of unknown length.
const Unknown = -1

// Left is the number of bytes that r still has, or Unknown.
func Left(r io.Reader) int64 {
	switch r := r.(type) {
	case interface{ Len() int }: // of bytes and strings
		return int64(r.Len())
	case *os.File:
		info, err := r.Stat()
		if err != nil || !info.Mode().IsRegular() {
			return Unknown
		}
		return seekable(r)
	case *io.SectionReader:
		return seekable(r)
	}
	return Unknown
}

func seekable(s io.Seeker) int64 {
	at, err := s.Seek(0, io.SeekCurrent)
	if err != nil {
		return Unknown
	}
	end, err := s.Seek(0, io.SeekEnd)
	if err != nil {
		return Unknown
	}
	if _, err := s.Seek(at, io.SeekStart); err != nil {
		return Unknown
	}
	return max(end-at, 0)
}

// Sure stores a stream in pieces that grow from the first size to the last.
const (
	firstPiece = 64 << 10
	lastPiece  = 16 << 20
)

// Sure is a reader of the next need bytes of r, all of which exist. If left, the number of bytes
// that r has left, covers them, it is r itself. Otherwise they are read into memory, piece by piece
// as they arrive. A header that promises more bytes than follow therefore costs no more memory than
// the bytes that follow. Too few of them are io.ErrUnexpectedEOF.
func Sure(r io.Reader, need, left int64) (io.Reader, error) {
	if need <= left || need <= firstPiece {
		return r, nil
	}
	var p pieces
	for size, got := int64(firstPiece), int64(0); got < need; size = min(2*size, lastPiece) {
		piece := make([]byte, min(size, need-got))
		n, err := io.ReadFull(r, piece)
		got += int64(n)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, fmt.Errorf("%w after %d of %d bytes", err, got, need)
		}
		p = append(p, piece)
	}
	return &p, nil
}

// pieces reads its contents, and drops them on the way.
type pieces [][]byte

func (p *pieces) Read(b []byte) (int, error) {
	for len(*p) > 0 && len((*p)[0]) == 0 {
		(*p)[0] = nil
		*p = (*p)[1:]
	}
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	(*p)[0] = (*p)[0][n:]
	return n, nil
}

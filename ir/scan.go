package ir

// ScanBlock is the length of the blocks of a scan. Inside a block, elements are joined one by one,
// starting with the first. The result of all earlier blocks is joined to that as one value, the
// block's offset. ScanBlock is promised to users.
const ScanBlock = 256

// Scan computes the results of a scan along one row in the promised order. It defines every op of
// ClassScan. Storage dtypes are carried as by [Fold]: each result is rounded, but the carried value
// is not.
type Scan struct {
	dt      DType
	join    joiner
	n       int
	running uint64 // of this block
	offset  uint64 // of the blocks before; the first block has none
	joined  uint64 // offset and running: the last result
}

// NewScan starts a scan by op, of ClassScan, of elements of dtype dt.
func NewScan(op Op, dt DType) *Scan { return KeepDenormals.newScan(op, dt) }

func (d Denormals) newScan(op Op, dt DType) *Scan {
	return &Scan{dt: dt, join: newJoiner(op.Info().Combine, dt.Compute(), d)}
}

// Next takes the next element and returns its result.
func (s *Scan) Next(x uint64) uint64 {
	x = widenBits(s.dt, x)
	if s.n%ScanBlock == 0 {
		s.offset, s.running = s.joined, x
	} else {
		s.running = s.join.do(s.running, x)
	}
	s.joined = s.running
	if s.n >= ScanBlock {
		s.joined = s.join.do(s.offset, s.running)
	}
	s.n++
	return narrowBits(s.dt, s.joined)
}

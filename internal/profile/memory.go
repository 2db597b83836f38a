package profile

import "time"

// Point is the use of memory at one time.
type Point struct {
	Time       time.Time
	Live, Pool int64
}

// Owner is a user of memory.
type Owner struct {
	What, Line   string
	Count, Bytes int64
}

// Peak is the largest observed use of memory, with its owners.
type Peak struct {
	Time   time.Time
	Bytes  int64
	Owners []Owner
}

// points hold the use of memory over time: a limited number, whose distance doubles when there
// would be more.
type points struct {
	list []Point
	gap  time.Duration
}

const (
	maxPoints = 2048
	firstGap  = time.Millisecond
	// peakStep is the fraction by which memory must have grown before the owners are listed again;
	// listing takes time proportional to the number of blocks.
	peakStep = 32
)

// remember adds a point of memory if it is time.
func (p *Profile) remember() {
	if p.Memory == nil {
		return
	}
	live, pool := p.Memory()
	now := time.Now()
	p.mu.Lock()
	p.points.add(Point{now, live, pool})
	grown := live > p.peak.Bytes+p.peak.Bytes/peakStep
	if grown {
		p.peak.Time, p.peak.Bytes = now, live
	}
	p.mu.Unlock()
	if !grown || p.Owners == nil {
		return
	}
	owners := p.Owners()
	p.mu.Lock()
	if p.peak.Bytes == live {
		p.peak.Owners = owners
	}
	p.mu.Unlock()
}

// add adds a point. Of points that are too close the higher one stays, which keeps the peaks.
func (x *points) add(a Point) {
	if x.gap == 0 {
		x.gap = firstGap
	}
	if n := len(x.list); n > 1 && a.Time.Sub(x.list[n-2].Time) < x.gap {
		if last := &x.list[n-1]; a.Live >= last.Live {
			*last = a
		}
		return
	}
	if len(x.list) == maxPoints {
		half := x.list[:0]
		for i := 0; i+1 < maxPoints; i += 2 {
			high := x.list[i]
			if x.list[i+1].Live > high.Live {
				high = x.list[i+1]
			}
			half = append(half, high)
		}
		x.list, x.gap = half, 2*x.gap
	}
	x.list = append(x.list, a)
}

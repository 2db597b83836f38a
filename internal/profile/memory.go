package profile

import "time"

// Point is the memory at a time.
type Point struct {
	Time       time.Time
	Live, Pool int64
}

// Owner is who has memory.
type Owner struct {
	What, Line   string
	Count, Bytes int64
}

// Peak is the most memory that was seen, and who had it.
type Peak struct {
	Time   time.Time
	Bytes  int64
	Owners []Owner
}

// points are what is kept of the memory over time: so many at most, twice as far apart
// when there would be more.
type points struct {
	list []Point
	gap  time.Duration
}

const (
	maxPoints = 2048
	firstGap  = time.Millisecond
	// peakStep is the part by which memory must have grown for its owners to be asked
	// for again, which takes as long as there are blocks.
	peakStep = 32
)

// remember notes the memory, if it is time.
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

// add keeps a point. Of those that lie too near the higher stays, so that no peak is lost.
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

package fusion

import (
	"errors"

	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// A program waits for the plan of a segment's first run. Making the greedy plan of a whole segment
// can take a thousand times as long as that run, because groups of many ops that read deep through
// moved data are large. Then the segment is planned in short parts instead, whose groups are small.
// The search for the best plan, in the background, is not limited by this.

const (
	planSeconds  = 1e-6 // about the time to put a value into a body
	patientRuns  = 10   // making a plan may take as long as so many runs, op by op
	leastPatient = 2048 // values that may be put into bodies in any case
)

// shortParts are the lengths, in nodes, of the parts in which a segment is planned, one after the
// other, until planning ends in time. 0 is the usual length; the last one is not limited.
var shortParts = [...]int{0, 16, 8}

// errLate ends planning that takes too long.
var errLate = errors.New("fusion: planning takes too long")

// exploreInTime is Explore with Options.Waits.
func exploreInTime(seg *segment.Segment, caps *runtime.Caps, opt Options) (p *Plan, err error) {
	for i, n := range shortParts {
		if n >= opt.partSize() {
			continue
		}
		x := newExplorer(seg, caps, opt)
		x.limited = i < len(shortParts)-1
		if n > 0 {
			x.opt.Mode, x.opt.Effort, x.opt.within = Greedy, 0, n
		}
		p, err = x.explore()
		x.count()
		if err == nil || !x.late() {
			break // otherwise the error may be that of a body that was not finished
		}
	}
	return p, err
}

// setPatience sets the number of values that may be put into bodies before planning takes long
// beside running the segment.
func (x *explorer) setPatience() {
	if !x.limited {
		return
	}
	seconds := 0.0
	for n := range x.seg.Nodes {
		node, t := &x.seg.Nodes[n], x.seg.Out[n]
		if !x.needed[t] || x.isView(t) {
			continue
		}
		bytes, points := x.elems(t)*x.elemSize(x.seg.Tensors[t].DT), x.elems(t)
		x.eachArg(int32(n), func(a int32) {
			bytes += x.memory(a) * x.elemSize(x.seg.Tensors[a].DT)
			points = max(points, x.elems(a))
		})
		seconds += x.model.seconds(bytes, points*int64(x.weight(node)))
	}
	x.patience = max(leastPatient, int(min(patientRuns*seconds/planSeconds, 1<<30)))
}

// late reports that planning has taken too long.
func (x *explorer) late() bool { return x.patience > 0 && x.values+x.maps.made > x.patience }

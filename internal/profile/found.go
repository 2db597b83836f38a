package profile

// Kinds of findings.
const (
	Recomputed = "recomputed" // a result that was not written was read later and recomputed
	OpByOp     = "op by op"   // a segment whose plan failed ran one op at a time
)

// Finding is something that made the program slower than necessary.
type Finding struct {
	What  string // one of the constants
	Of    string // the op
	Line  string // of the program, if known
	Count int64
}

const maxFindings = 256

// Found counts a finding of that kind, op and line. Beyond the largest number of different
// findings, new ones are counted together, without op and line.
func (p *Profile) Found(what, of, line string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f := Finding{What: what, Of: of, Line: line}
	if _, ok := p.found[f]; !ok && len(p.found) >= maxFindings {
		f.Of, f.Line = "", ""
	}
	p.found[f]++
}

// findings lists the findings in no order. The caller holds the lock.
func (p *Profile) findings() (list []Finding) {
	for f, n := range p.found {
		f.Count = n
		list = append(list, f)
	}
	return list
}

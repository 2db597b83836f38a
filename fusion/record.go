package fusion

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Record is a plan in the form that is stored for later processes, with the facts needed to use it.
type Record struct {
	Mode Mode // the mode in which it was explored
	// Wants are results that are costly to recompute and that the plan writes because they were
	// needed.
	Wants []int
	// Segment is the text of the segment that was explored, for human readers.
	Segment string
	// Plan is the plan's text. [ParsePlan] parses it before use.
	Plan string
}

// Same reports that two records hold the same plan and write the same results.
func (r *Record) Same(s *Record) bool { return r.Plan == s.Plan && slices.Equal(r.Wants, s.Wants) }

// MaxRecords is the number of records that one key may have.
const MaxRecords = 16

// maxWants bounds the wants of a record. A queue has fewer ops.
const maxWants = 1 << 13

// FormatRecords prints records in the form that [ParseRecords] reads:
//
//	record best
//	wants 4 7
//	segment
//	| %0 = input : float32(4)
//	plan
//	| step 0 domain t1 nodes 0
//	| ...
func FormatRecords(rs []Record) string {
	var b strings.Builder
	for i := range rs {
		r := &rs[i]
		fmt.Fprintf(&b, "record %s", r.Mode)
		if len(r.Wants) > 0 {
			b.WriteByte('\n')
			b.WriteString("wants")
			for _, w := range r.Wants {
				fmt.Fprintf(&b, " %d", w)
			}
		}
		b.WriteString("\nsegment\n")
		behindBars(&b, r.Segment)
		b.WriteString("plan\n")
		behindBars(&b, r.Plan)
	}
	return b.String()
}

func behindBars(b *strings.Builder, text string) {
	for line := range strings.Lines(text) {
		if line != "\n" {
			line = " " + strings.TrimRight(line, "\n") + "\n"
		}
		b.WriteString("|" + line)
	}
}

// ParseRecords reads the output of FormatRecords. It does not check the plans: [ParsePlan] checks
// their text, and [Plan.Verify] whether they fit a segment. An error names the line.
func ParseRecords(src string) ([]Record, error) {
	p := recordParser{}
	n := 0
	for line := range strings.Lines(src) {
		n++
		if err := p.line(strings.TrimSuffix(line, "\n")); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := p.end(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n, err)
	}
	return p.records, nil
}

type recordParser struct {
	records []Record
	seen    map[string]bool // words that the current record has had
	text    strings.Builder
	to      *string // the field that the collected text belongs to
}

func (p *recordParser) line(line string) error {
	if code, ok := strings.CutPrefix(line, "|"); ok {
		code = strings.TrimPrefix(code, " ")
		if p.to == nil {
			return fmt.Errorf("%q belongs to no record", line)
		}
		p.text.WriteString(code)
		p.text.WriteByte('\n')
		return nil
	}
	word, rest, _ := strings.Cut(line, " ")
	if word == "record" {
		return p.begin(rest)
	}
	if len(p.records) == 0 || p.seen[word] {
		return fmt.Errorf("got %q, want the start of a record", line)
	}
	p.flush()
	p.seen[word] = true
	r := &p.records[len(p.records)-1]
	switch {
	case word == "segment" && rest == "":
		p.to = &r.Segment
	case word == "plan" && rest == "":
		p.to = &r.Plan
	case word == "wants":
		return r.readWants(rest)
	default:
		return fmt.Errorf("unknown line %q", line)
	}
	return nil
}

func (p *recordParser) begin(mode string) error {
	if err := p.end(); err != nil {
		return err
	}
	if len(p.records) == MaxRecords {
		return fmt.Errorf("more than %d records", MaxRecords)
	}
	for m := Best; m <= Unfused; m++ {
		if m.String() == mode {
			p.records = append(p.records, Record{Mode: m})
			p.seen = map[string]bool{}
			return nil
		}
	}
	return fmt.Errorf("unknown mode %q", mode)
}

// end checks that the last record is complete.
func (p *recordParser) end() error {
	p.flush()
	if len(p.records) > 0 && (!p.seen["segment"] || !p.seen["plan"]) {
		return fmt.Errorf("a record without segment or plan")
	}
	return nil
}

func (p *recordParser) flush() {
	if p.to != nil {
		*p.to = p.text.String()
		p.text.Reset()
		p.to = nil
	}
}

func (r *Record) readWants(rest string) error {
	for w := range strings.FieldsSeq(rest) {
		n, err := strconv.ParseUint(w, 10, 15)
		if err != nil || len(r.Wants) == maxWants {
			return fmt.Errorf("%q is not a number, or there are too many numbers", w)
		}
		r.Wants = append(r.Wants, int(n))
	}
	return nil
}

package gomlxbackend

import (
	"strconv"
	"strings"

	"github.com/gomlx/compute"
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/hostapi"
	"github.com/pkg/errors"
)

// An error of a run names an op of Millrace, of which a node has one or many, and not those of its
// name. So the ops of a node carry the node's site in place of a line of this package.

// siteMark separates a node's op from its number.
const siteMark = ", node "

// site is the text that stands for a node: its op, its number, and its function if that is not main.
func (n *Node) site() string {
	s := n.op.String() + siteMark + strconv.Itoa(n.id)
	switch f := n.fn; {
	case f.name == compute.MainName:
	case f.name == "":
		s += " of a closure"
	default:
		s += " of function " + strconv.Quote(f.name)
	}
	return s
}

// at makes the ops that are recorded from now on those of a site.
func (r *run) at(site string) {
	if r.site != site {
		r.site = site
		hostapi.Site(r.sc, site)
	}
}

// named puts the node of an op that failed in front of the error of a run: its op with the shapes
// of its operands, as in errors of recording it.
func (p *program) named(err error) error {
	var op *millrace.OpError
	if !errors.As(err, &op) || !strings.Contains(op.Caller, siteMark) {
		return err
	}
	if p != nil {
		for i := range p.steps {
			if n := p.steps[i].node; p.steps[i].site == op.Caller {
				return errors.WithMessage(err, signature(n.op, n.in)+siteMark+strconv.Itoa(n.id))
			}
		}
	}
	return errors.WithMessage(err, op.Caller)
}

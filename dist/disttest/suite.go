package disttest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-go/millrace/dist"
)

// Case is a test that runs on every rank of a job.
type Case struct {
	Name    string
	Ranks   []int // the sizes of jobs to run it with
	Options dist.Options
	// Fails says that the World fails, as it should: Run returns nil, and Close then ends the job.
	Fails bool
	// Run returns nil if everything was as it should be on this rank.
	Run func(ctx context.Context, w *dist.World) error
}

// Sizes are the sizes of jobs of most cases. Sums over 3 and 6 ranks have an odd one.
var Sizes = []int{1, 2, 3, 4, 6}

// several are sizes with other ranks.
var several = []int{2, 3, 4}

// Patience is how long any rank may take to learn of a mistake.
const Patience = 5 * time.Second

// Cases lists the cases. Those that do not fail may run one after another on one World.
func Cases() []Case {
	var all []Case
	all = append(all, values()...)
	all = append(all, derivatives()...)
	all = append(all, states()...)
	all = append(all, tapes()...)
	return append(all, mistakes()...)
}

// Run runs cases. start runs one with a number of ranks, and returns what Run returned on each,
// and the driver's own errors.
func Run(t *testing.T, cases []Case, start func(t *testing.T, c Case, ranks int) []error) {
	for _, c := range cases {
		for _, n := range c.Ranks {
			t.Run(fmt.Sprintf("%s/%d", c.Name, n), func(t *testing.T) {
				for r, err := range start(t, c, n) {
					if err != nil {
						t.Errorf("rank %d: %v", r, err)
					}
				}
			})
		}
	}
}

// Start runs a case on goroutines, each a rank that the opener of its number opens, and returns what
// Run or Close returned on each.
func Start(c Case, ranks int, opener func(rank int) *dist.Opener) []error {
	errs := make([]error, ranks)
	var all sync.WaitGroup
	for r := range errs {
		all.Go(func() {
			o := c.Options
			o.Opener, o.Log = opener(r), func(string) {}
			ctx := context.Background()
			w, err := dist.Open(ctx, o)
			if err != nil {
				errs[r] = err
				return
			}
			if errs[r] = c.Run(ctx, w); errs[r] != nil && !c.Fails {
				w.Fail(errs[r]) // or the others would wait
			}
			if err := w.Close(); err != nil && !c.Fails && errs[r] == nil {
				errs[r] = err
			}
		})
	}
	all.Wait()
	return errs
}

// want returns an error unless err is of a kind and its text has all parts.
func want(err error, is func(error) bool, parts ...string) error {
	if err == nil {
		return fmt.Errorf("no error, want one with %q", parts)
	}
	if !is(err) {
		return fmt.Errorf("an error of another kind: %w", err)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			return fmt.Errorf("%q does not say %q", err, p)
		}
	}
	return nil
}

package dist_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
)

var update = flag.Bool("update", false, "write the tables of docs/benchmarks/ranks.md")

// The model of a sum's time: messages · α + bytes · β + bytes to add / rate of adding. TestMessages
// checks the numbers of messages and bytes against the code; the rest is assumed or measured.

// link is a network: the time that a message costs its sender, and that of a byte on the wire.
type link struct {
	name  string
	alpha time.Duration
	beta  float64 // seconds
}

var links = []link{
	{"1 Gbit", 30 * time.Microsecond, 8e-9},
	{"10 Gbit", 30 * time.Microsecond, 8e-10},
	{"100 Gbit", 3 * time.Microsecond, 8e-11},
}

const adding = 15e9 // bytes a second of all parts

// messages is how many messages a rank sends for a sum of so many bytes, and their bytes.
func messages(n, bytes int) (count int, sent float64) {
	if n*bytes <= dist.SmallSum {
		return n - 1, float64((n - 1) * bytes)
	}
	return 2 * (n - 1) * dist.Pieces(n, bytes), 2 * float64(bytes) / float64(n) * float64(n-1)
}

// cost is the time of a sum, and the share of it that messages cost whatever their size.
func (l link) cost(n, bytes int) (took, latency float64) {
	count, sent := messages(n, bytes)
	latency = float64(count) * l.alpha.Seconds()
	return latency + sent*l.beta + float64(bytes)/adding, latency
}

// doubling is the time of a sum by recursive halving and doubling, which has the fewest messages.
func (l link) doubling(n, bytes int) float64 {
	return 2*math.Log2(float64(n))*l.alpha.Seconds() + 2*float64(bytes)/float64(n)*float64(n-1)*l.beta + float64(bytes)/adding
}

func milliseconds(s float64) string {
	if s < 10e-3 {
		return fmt.Sprintf("%.1f ms", s*1e3)
	}
	return fmt.Sprintf("%.0f ms", s*1e3)
}

// costs is the table of docs/benchmarks/ranks.md.
func costs() string {
	var b strings.Builder
	b.WriteString("| ranks |")
	for _, bytes := range []int{4, 64} {
		for _, l := range links {
			fmt.Fprintf(&b, " %d MiB, %s |", bytes, l.name)
		}
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", 2*len(links)) + "\n")
	for _, n := range []int{2, 8, 64, 256, 1024} {
		fmt.Fprintf(&b, "| %d |", n)
		for _, bytes := range []int{4 << 20, 64 << 20} {
			for _, l := range links {
				took, latency := l.cost(n, bytes)
				fmt.Fprintf(&b, " %s, %.0f %%; %s |", milliseconds(took), 100*latency/took, milliseconds(l.doubling(n, bytes)))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestCosts: the table of docs/benchmarks/ranks.md is what the model computes.
func TestCosts(t *testing.T) {
	const file, begin, end = "../docs/benchmarks/ranks.md", "<!-- costs: go test ./dist -run TestCosts -update -->\n", "<!-- /costs -->"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no block of costs", file)
	}
	if old == costs() {
		return
	}
	if !*update {
		t.Fatalf("%s has another table; -update writes this one:\n%s", file, costs())
	}
	if err := os.WriteFile(file, []byte(before+begin+costs()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// counted counts messages to other ranks, and their bytes.
type counted struct {
	dist.Driver
	messages, bytes *atomic.Int64
}

func (c counted) sends(bytes int) {
	if bytes > 0 {
		c.messages.Add(1)
		c.bytes.Add(int64(bytes))
	}
}

func (c counted) AllToAll(send, recv []byte, sendAt, recvAt []int) (dist.Pending, error) {
	for r := range c.Info().Size {
		if r != c.Info().Rank {
			c.sends(sendAt[r+1] - sendAt[r])
		}
	}
	return c.Driver.AllToAll(send, recv, sendAt, recvAt)
}

func (c counted) AllGather(send, recv []byte, recvAt []int) (dist.Pending, error) {
	for range c.Info().Size - 1 {
		c.sends(len(send))
	}
	return c.Driver.AllGather(send, recv, recvAt)
}

// TestMessages: sums send as many messages and bytes as the model says, besides one head.
func TestMessages(t *testing.T) {
	const head = 64
	for _, n := range []int{2, 3, 4} {
		var sent, bytes atomic.Int64
		ws, errs := open(n, func(_ int, o *dist.Options) {
			driver := o.Opener.Open
			o.Opener = &dist.Opener{Launched: o.Opener.Launched, Open: func(ctx context.Context) (dist.Driver, error) {
				d, err := driver(ctx)
				return counted{d, &sent, &bytes}, err
			}}
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{4 * n, dist.SmallSum / n &^ 3, dist.SmallSum/n&^3 + 4*n, 1 << 20, 5<<20 + 4*n} {
			sent.Store(0)
			bytes.Store(0)
			each(ws, func(w *dist.World) {
				x := millrace.OnesOn(stream(t), millrace.Float32, size/4)
				defer x.Release()
				sum := w.AllReduce(x)
				defer sum.Release()
				if err := sum.Eval(); err != nil {
					t.Error(err)
				}
			})
			count, model := messages(n, size)
			gotCount, gotBytes := sent.Load()/int64(n)-int64(n-1), float64(bytes.Load())/float64(n)-head*float64(n-1)
			if gotCount != int64(count) || math.Abs(gotBytes-model) > 64 {
				t.Errorf("%d ranks, %d bytes: each sends %d messages of %.0f bytes together; the model says %d of %.0f", n, size, gotCount, gotBytes, count, model)
			}
		}
		each(ws, func(w *dist.World) { w.Close() })
	}
}

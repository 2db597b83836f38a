package runtime

// A Chain is a run of launches that hand results to each other: an attention's
// scores, their softmax, and what it weighs. Run one after another over tiles
// of the leading dims, which they have in common, what they hand over never
// leaves a cache, and there is never memory for all of it. The first launch of
// a chain points to it; a device that knows nothing better runs it by [RunChains].
type Chain struct {
	N    int // launches, the first included
	Lead int // leading dims that all of them keep, of equal sizes
	// Local is, for each local memory, the bytes of one point of the leading
	// dims. An Access with Local i+1 is in memory i; its strides are those of
	// the whole result, dense, and its Offset is 0. A launch may be handed one
	// result and hand on another in the same memory.
	Local []int64
}

// Tiles is the number of tiles of at most rows points of the last leading dim.
func (c *Chain) Tiles(ls []Launch, rows int64) int64 {
	n := int64(1)
	for _, d := range ls[0].Dims[:c.Lead-1] {
		n *= d
	}
	return n * c.Across(ls, rows)
}

// Across is the number of tiles of at most rows points that follow each other
// along the last leading dim.
func (c *Chain) Across(ls []Launch, rows int64) int64 {
	return (ls[0].Dims[c.Lead-1] + rows - 1) / rows
}

// Rows is how many points of the last leading dim a tile may have so that its
// local memory takes at most budget bytes: at least 1.
func (c *Chain) Rows(ls []Launch, budget int64) int64 {
	each := int64(0)
	for _, b := range c.Local {
		each += b
	}
	return max(1, min(ls[0].Dims[c.Lead-1], budget/max(each, 1)))
}

// Wider is the chain with as few leading dims as leave tiles of at most budget bytes
// of local memory, for devices that want more work at a time than one point of the
// others.
func (c *Chain) Wider(ls []Launch, budget int64) *Chain {
	w := &Chain{N: c.N, Lead: c.Lead, Local: append([]int64(nil), c.Local...)}
	each := int64(0)
	for _, b := range c.Local {
		each += b
	}
	for w.Lead > 1 {
		n := ls[0].Dims[w.Lead-1]
		if each*n > budget/2 { // not two of the wider points
			break
		}
		each *= n
		for i := range w.Local {
			w.Local[i] *= n
		}
		w.Lead--
	}
	return w
}

// Tile writes the launches of one tile to into, which has N elements whose Args
// are as long as those of ls. local holds the local memories, each for rows
// points at least.
func (c *Chain) Tile(ls []Launch, tile, rows int64, local []Buffer, into []Launch) {
	across := c.Across(ls, rows)
	first := tile % across * rows
	var at [MaxRank]int64
	at[c.Lead-1] = first
	for d, rest := c.Lead-2, tile/across; d >= 0; d-- {
		at[d], rest = rest%ls[0].Dims[d], rest/ls[0].Dims[d]
	}
	for i := range c.N {
		l, args := &into[i], into[i].Args
		*l = ls[i]
		l.Chain, l.Choice, l.Args = nil, 0, args[:len(ls[i].Args)]
		copy(l.Args, ls[i].Args)
		for d := range c.Lead - 1 {
			l.Dims[d] = 1
		}
		l.Dims[c.Lead-1] = min(rows, ls[i].Dims[c.Lead-1]-first)
		for a := range l.Args {
			arg := &l.Args[a]
			if arg.Local > 0 {
				arg.Buf, arg.Local = local[arg.Local-1], 0
				continue
			}
			for d, p := range at[:c.Lead] {
				arg.Offset += p * arg.Stride[d]
			}
		}
	}
}

// NewTile makes what Tile writes to.
func (c *Chain) NewTile(ls []Launch) []Launch {
	into := make([]Launch, c.N)
	for i := range into {
		into[i].Args = make([]Access, len(ls[i].Args))
	}
	return into
}

// Allocator is what a device gives local memory by.
type Allocator interface {
	Alloc(bytes int64) (Buffer, error)
	Free(Buffer)
}

// RunChains runs a list with chains in it by a device's Run for lists without:
// one tile after another, in local memory of about budget bytes. run must not
// hold on to what it is passed.
func RunChains(ls []Launch, budget int64, d Allocator, run func([]Launch) error) error {
	return EachChain(ls, run, func(ls []Launch) error { return runChain(ls, budget, d, run) })
}

// EachChain calls plain with every run of launches between chains and chain
// with the launches of every chain, in order. A LaunchError of theirs is
// brought to the numbers of the list; one of a chain names its first launch,
// since tiles that ran wrote nothing that is read before the chain runs again.
func EachChain(ls []Launch, plain, chain func([]Launch) error) error {
	for i := 0; i < len(ls); {
		if c := ls[i].Chain; c != nil {
			if err := chain(ls[i : i+c.N]); err != nil {
				if e, ok := err.(*LaunchError); ok {
					err = e.Err
				}
				return &LaunchError{Index: i, Err: err}
			}
			i += c.N
			continue
		}
		n := i + 1
		for n < len(ls) && ls[n].Chain == nil {
			n++
		}
		if err := plain(ls[i:n]); err != nil {
			if e, ok := err.(*LaunchError); ok {
				e.Index += i
			}
			return err
		}
		i = n
	}
	return nil
}

func runChain(ls []Launch, budget int64, d Allocator, run func([]Launch) error) error {
	c := ls[0].Chain
	rows := c.Rows(ls, budget)
	local := make([]Buffer, len(c.Local))
	for i, bytes := range c.Local {
		b, err := d.Alloc(bytes * rows)
		if err != nil {
			return err
		}
		defer d.Free(b)
		local[i] = b
	}
	into := c.NewTile(ls)
	for tile := range c.Tiles(ls, rows) {
		c.Tile(ls, tile, rows, local, into)
		if err := run(into); err != nil {
			return err
		}
	}
	return nil
}

// HasChains reports whether a list has any.
func HasChains(ls []Launch) bool {
	for i := range ls {
		if ls[i].Chain != nil {
			return true
		}
	}
	return false
}

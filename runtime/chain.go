package runtime

// A Chain is a run of launches that pass results to each other, such as an attention's scores,
// their softmax, and the weighted sum of the values. A device runs all launches of the chain over
// one tile of the leading dims, then over the next tile. All launches have the same leading dims.
// The passed results stay in a cache, and no memory is allocated for the whole of them. The first
// launch of a chain points to it. A device without a better method runs the chain by [RunChains].
type Chain struct {
	N    int // number of launches, the first included
	Lead int // number of leading dims, which all launches keep with equal sizes
	// Local holds, for each local memory, the bytes of one point of the leading dims. An Access
	// with Local i+1 is in memory i; its strides are those of the whole dense result, and its
	// Offset is 0. A launch may read one result and write another one in the same memory.
	Local []int64
}

// Tiles returns the number of tiles of at most rows points of the last leading dim.
func (c *Chain) Tiles(ls []Launch, rows int64) int64 {
	n := int64(1)
	for _, d := range ls[0].Dims[:c.Lead-1] {
		n *= d
	}
	return n * c.Across(ls, rows)
}

// Across returns the number of tiles, of at most rows points each, along the last leading dim.
func (c *Chain) Across(ls []Launch, rows int64) int64 {
	return (ls[0].Dims[c.Lead-1] + rows - 1) / rows
}

// Rows returns the most points of the last leading dim for which a tile's local memory takes at
// most budget bytes. It returns at least 1.
func (c *Chain) Rows(ls []Launch, budget int64) int64 {
	each := int64(0)
	for _, b := range c.Local {
		each += b
	}
	return max(1, min(ls[0].Dims[c.Lead-1], budget/max(each, 1)))
}

// Wider returns the chain with as few leading dims as possible while a tile's local memory stays
// within budget bytes. It is for devices that need more work per tile than one point of the other
// leading dims gives.
func (c *Chain) Wider(ls []Launch, budget int64) *Chain {
	w := &Chain{N: c.N, Lead: c.Lead, Local: append([]int64(nil), c.Local...)}
	each := int64(0)
	for _, b := range c.Local {
		each += b
	}
	for w.Lead > 1 {
		n := ls[0].Dims[w.Lead-1]
		if each*n > budget/2 { // fewer than two of the wider points fit
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

// Tile writes the launches of one tile to into. into must come from NewTile: N elements whose Args
// are as long as those of ls. Each buffer of local has room for at least rows points.
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

// NewTile allocates the launches that Tile writes.
func (c *Chain) NewTile(ls []Launch) []Launch {
	into := make([]Launch, c.N)
	for i := range into {
		into[i].Args = make([]Access, len(ls[i].Args))
	}
	return into
}

// Allocator allocates the local memory of a chain; a Device is one.
type Allocator interface {
	Alloc(bytes int64) (Buffer, error)
	Free(Buffer)
}

// RunChains runs a list that contains chains on a device whose Run takes none: it runs one tile
// after another, in local memory of about budget bytes. run must not keep the slice that it is
// given.
func RunChains(ls []Launch, budget int64, d Allocator, run func([]Launch) error) error {
	return EachChain(ls, run, func(ls []Launch) error { return runChain(ls, budget, d, run) })
}

// EachChain calls plain with every run of launches between chains, and chain with the launches of
// every chain, in order. It renumbers the index of a LaunchError to the whole list. An error of a
// chain gets the index of the chain's first launch: the tiles that ran wrote nothing that is read
// before the chain runs again.
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

// HasChains reports whether a list contains a chain.
func HasChains(ls []Launch) bool {
	for i := range ls {
		if ls[i].Chain != nil {
			return true
		}
	}
	return false
}

package ir

// EachRun splits a reshape into the shortest runs of dims with equal products: dims i0 to i1 of one
// shape are dims j0 to j1 of the other. A run with no dims on one side has only dims of size 1 on
// the other. In a shape with a dim of size 0, the last run is all remaining dims. The relative form
// of a reshape is its runs, and fusion relies on exactly these: both use this one definition, so
// they always agree.
func EachRun(from, to Shape, f func(i0, i1, j0, j1 int)) {
	i, j := 0, 0
	for i < len(from) || j < len(to) {
		i0, j0 := i, j
		p, q := 1, 1
		if i < len(from) {
			p, i = from[i], i+1
		}
		if j < len(to) {
			q, j = to[j], j+1
		}
		for p != q {
			switch {
			case p < q && i < len(from):
				p, i = p*from[i], i+1
			case j < len(to):
				q, j = q*to[j], j+1
			default:
				p, q, i, j = 0, 0, len(from), len(to)
			}
		}
		f(i0, i, j0, j)
	}
}

package portion

// Of returns the rows of part i of n rows: from and to. An odd number of parts is cut at n·i/parts,
// rounded down. An even number is half as many parts, each cut in halves, the second of which has
// the odd row. So the parts of a part are those of the whole, where a part has 2, 4, 8 and so on.
func Of(n, parts, i int) (from, to int) {
	if parts%2 != 0 {
		at := func(i int) int { return n/parts*i + n%parts*i/parts } // n·i may overflow
		return at(i), at(i + 1)
	}
	from, to = Of(n, parts/2, i/2)
	middle := from + (to-from)/2
	if i%2 == 0 {
		return from, middle
	}
	return middle, to
}

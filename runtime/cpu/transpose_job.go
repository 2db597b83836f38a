package cpu

import "unsafe"

// transposedJob runs an elementwise launch with transposed operands; its shares are tiles.
type transposedJob struct {
	e            *executor
	r            *ready
	args         args // of the launch
	code         evaluator
	down, across int64 // tiles along the two dims
	room         int64 // bytes of a tile's transposed operands
}

func (j *transposedJob) run(r *ready) {
	t := &r.transposed
	r.tape.lose()
	j.r, j.code = r, r.evaluator(0)
	r.writeArgs(&j.args)
	m, n := j.args.dims[t.dim], j.args.dims[j.args.rank-1]
	j.down, j.across = (m+t.rows-1)/t.rows, (n+t.cols-1)/t.cols
	j.room = 0
	for i, o := range r.p.kernel.Operands {
		if t.has(i) {
			j.room += j.tileBytes(int64(o.DT.Size()))
		}
	}
	tiles := r.total / (m * n) * j.down * j.across
	threads := min(int(r.threads), j.e.threads)
	j.e.pool.split(threads, tiles, tiles/int64(threads*8)+1, j)
	j.args.forget()
	j.r, j.code = nil, nil
}

// tileBytes returns the bytes of an operand in a tile.
func (j *transposedJob) tileBytes(size int64) int64 {
	return aligned(j.r.transposed.rows*j.r.transposed.cols*size + overrun)
}

func (j *transposedJob) share(who int, begin, end int64) {
	m := &j.e.memory[who]
	scratch := j.code.scratch()
	s := m.reserve(aligned(scratch) + j.room)
	if s == nil {
		j.e.failed.Store(true)
		return
	}
	a, ops := &m.args, append(m.tile.ops[:0], j.args.ops...)
	*a = j.args
	a.ops, a.scratch, a.values = ops, unsafe.Slice((*byte)(s), scratch), &m.values
	for u := begin; u < end; u++ {
		j.place(a, u, unsafe.Add(s, aligned(scratch)))
		n := a.dims[0]
		if a.rank > 1 {
			n *= a.dims[1]
		}
		j.code.eval(a, 0, n)
	}
	clear(ops)
	*a, m.tile.ops = args{}, ops[:0]
}

// place moves the operands and the domain to tile u. The domain has two dims, or one if all
// operands continue from row to row.
func (j *transposedJob) place(a *args, u int64, local unsafe.Pointer) {
	t, whole := &j.r.transposed, &j.args
	inner := whole.rank - 1
	top, left, rest := u%j.down*t.rows, u/j.down%j.across*t.cols, u/j.down/j.across
	rows, cols := min(whole.dims[t.dim]-top, t.rows), min(whole.dims[inner]-left, t.cols)
	for i := range a.ops {
		from, o := &whole.ops[i], &a.ops[i]
		o.base, o.offset = from.base, from.offset+top*from.stride[t.dim]+left*from.stride[inner]
		o.stride[0], o.stride[1] = from.stride[t.dim], from.stride[inner]
	}
	for d := inner - 1; d >= 0; d-- {
		if d == t.dim {
			continue
		}
		for i := range a.ops {
			a.ops[i].offset += rest % whole.dims[d] * whole.ops[i].stride[d]
		}
		rest /= whole.dims[d]
	}
	goesOn := true
	for i := range a.ops {
		o := &a.ops[i]
		if t.has(i) {
			size := j.r.p.kernel.Operands[i].DT.Size()
			spreadTile(size, local, o, rows, cols)
			o.base, o.offset, o.stride[0], o.stride[1] = local, 0, cols, 1
			local = unsafe.Add(local, j.tileBytes(int64(size)))
		}
		goesOn = goesOn && o.stride[0] == cols*o.stride[1]
	}
	a.rank, a.dims[0], a.dims[1] = 2, rows, cols
	if goesOn {
		a.rank, a.dims[0] = 1, rows*cols
		for i := range a.ops {
			a.ops[i].stride[0] = a.ops[i].stride[1]
		}
	}
}

// spreadTile makes the rows of an operand adjacent. If all rows are equal it copies the first one.
func spreadTile(size int, to unsafe.Pointer, o *operand, rows, cols int64) {
	if o.stride[0] != 0 {
		gatherTile(size, to, cols, o.base, o.offset, o.stride[0], o.stride[1], rows, cols)
		return
	}
	gatherTile(size, to, cols, o.base, o.offset, 0, o.stride[1], 1, cols)
	all := unsafe.Slice((*byte)(to), rows*cols*int64(size))
	for done := int(cols) * size; done < len(all); {
		done += copy(all[done:], all[:done])
	}
}

// gatherTile sets element i*ld + j of dst to element offset + i*rs + j*cs of src, for i < rows, j
// < cols. Elements have size bytes.
func gatherTile(size int, dst unsafe.Pointer, ld int64, src unsafe.Pointer, offset, rs, cs, rows, cols int64) {
	switch size {
	case 1:
		gatherOf((*uint8)(dst), ld, (*uint8)(src), offset, rs, cs, rows, cols)
	case 2:
		gatherOf((*uint16)(dst), ld, (*uint16)(src), offset, rs, cs, rows, cols)
	case 4:
		gatherOf((*uint32)(dst), ld, (*uint32)(src), offset, rs, cs, rows, cols)
	default:
		gatherOf((*uint64)(dst), ld, (*uint64)(src), offset, rs, cs, rows, cols)
	}
}

// gatherOf is gatherTile for one type. Squares of 16 by 16 elements keep both sides in cache.
func gatherOf[T any](dst *T, ld int64, src *T, offset, rs, cs, rows, cols int64) {
	var zero T
	size := int64(unsafe.Sizeof(zero))
	for i0 := int64(0); i0 < rows; i0 += 16 {
		for j0 := int64(0); j0 < cols; j0 += 16 {
			to := min(j0+16, cols)
			for i := i0; i < min(i0+16, rows); i++ {
				from := unsafe.Add(unsafe.Pointer(src), (offset+i*rs+j0*cs)*size)
				row := unsafe.Slice((*T)(unsafe.Add(unsafe.Pointer(dst), (i*ld+j0)*size)), to-j0)
				for j := range row {
					row[j] = *(*T)(unsafe.Add(from, int64(j)*cs*size))
				}
			}
		}
	}
}

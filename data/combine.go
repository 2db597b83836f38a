package data

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/millrace-go/millrace"
)

// Subset is the records of a source with these indices, in their order. An index out of range is an
// error. The list is not copied and must not change.
func Subset(src Source, indices []int) (Source, error) {
	n := src.Len()
	if k := slices.IndexFunc(indices, func(i int) bool { return i < 0 || i >= n }); k >= 0 {
		return nil, fmt.Errorf("data: subset: index %d does not exist in %d records", indices[k], n)
	}
	return &subset{src, indices}, nil
}

type subset struct {
	Source
	indices []int
}

func (s *subset) Len() int                    { return len(s.indices) }
func (s *subset) Read(i int, dst []any) error { return s.Source.Read(s.indices[i], dst) }

// Split divides a source in two, as for training and validation: the first part gets a fraction of
// the records, rounded to a whole number. The choice depends on the seed and the number of records
// only. Both parts keep the order of the source. A fraction outside [0, 1] is an error.
func Split(src Source, fraction float64, seed uint64) (first, rest Source, err error) {
	if !(fraction >= 0 && fraction <= 1) {
		return nil, nil, fmt.Errorf("data: split: the fraction %v is not within [0, 1]", fraction)
	}
	n := src.Len()
	if uint64(n) > math.MaxUint32 {
		return nil, nil, fmt.Errorf("data: split: %d records are more than %d", n, uint32(math.MaxUint32))
	}
	order := make([]uint32, n)
	shuffle(order, seed, splitEpoch)
	all := make([]int, n)
	for i, o := range order {
		all[i] = int(o)
	}
	k := int(math.Round(float64(fraction * float64(n))))
	a, b := all[:k:k], all[k:]
	slices.Sort(a)
	slices.Sort(b)
	return &subset{src, a}, &subset{src, b}, nil
}

// Concat is the records of several sources, one source after another, as for the files of one data
// set. No sources are an error. Sources whose fields differ in number, dtype or shape are
// millrace.ErrShape.
func Concat(sources ...Source) (Source, error) {
	if len(sources) == 0 {
		return nil, fmt.Errorf("data: concat: no sources were given")
	}
	s := &concat{sources: slices.Clone(sources), ends: make([]int, len(sources))}
	fields, total := sources[0].Fields(), 0
	for k, src := range sources {
		if !slices.EqualFunc(fields, src.Fields(), Field.same) {
			return nil, fmt.Errorf("data: concat: %w: source %d has the fields %v, source 0 has %v", millrace.ErrShape, k, src.Fields(), fields)
		}
		if src.Len() > math.MaxInt-total {
			return nil, fmt.Errorf("data: concat: more records than can be counted")
		}
		total += src.Len()
		s.ends[k] = total
	}
	return s, nil
}

type concat struct {
	sources []Source
	ends    []int // by source: the index after its last record
}

func (s *concat) Len() int        { return s.ends[len(s.ends)-1] }
func (s *concat) Fields() []Field { return s.sources[0].Fields() }

func (s *concat) Read(i int, dst []any) error {
	k := sort.SearchInts(s.ends, i+1)
	if k > 0 {
		i -= s.ends[k-1]
	}
	if err := s.sources[k].Read(i, dst); err != nil {
		return inRecord(i, err)
	}
	return nil
}

// Zip puts sources of equal length side by side: record i has the fields of all their records i,
// source by source. Sources of different lengths, and no sources, are millrace.ErrShape.
func Zip(sources ...Source) (Source, error) {
	s := &zip{sources: slices.Clone(sources)}
	for k, src := range sources {
		if src.Len() != sources[0].Len() {
			return nil, fmt.Errorf("data: zip: %w: source 0 has %d records, source %d has %d", millrace.ErrShape, sources[0].Len(), k, src.Len())
		}
		s.fields = append(s.fields, src.Fields()...)
	}
	if err := checkFields(s.fields, 0); err != nil {
		return nil, fmt.Errorf("data: zip: %w", err)
	}
	return s, nil
}

type zip struct {
	sources []Source
	fields  []Field
}

func (s *zip) Len() int        { return s.sources[0].Len() }
func (s *zip) Fields() []Field { return s.fields }

func (s *zip) Read(i int, dst []any) error {
	for _, src := range s.sources {
		n := len(src.Fields())
		if err := src.Read(i, dst[:n]); err != nil {
			return err
		}
		dst = dst[n:]
	}
	return nil
}

// Map makes each record from one of another source by a function f: in has the fields of src, out
// those of fields, each as in [Source]. The loader's workers call f concurrently, and an error of f
// ends the loop over batches. For work on whole batches use tensor ops. A field that no tensor can
// hold is millrace.ErrDType or millrace.ErrShape.
func Map(src Source, fields []Field, f func(i int, in, out []any) error) (Source, error) {
	if err := checkFields(fields, 0); err != nil {
		return nil, fmt.Errorf("data: map: %w", err)
	}
	if err := checkFields(src.Fields(), 0); err != nil {
		return nil, fmt.Errorf("data: map: %w", err)
	}
	return &mapped{src: src, fields: slices.Clone(fields), f: f}, nil
}

type mapped struct {
	src    Source
	fields []Field
	f      func(i int, in, out []any) error
	rooms  sync.Pool // of []any, for a record of src
}

func (s *mapped) Len() int        { return s.src.Len() }
func (s *mapped) Fields() []Field { return s.fields }

func (s *mapped) Read(i int, dst []any) error {
	in, ok := s.rooms.Get().(*[]any)
	if !ok {
		r := room(s.src.Fields())
		in = &r
	}
	defer s.rooms.Put(in)
	if err := s.src.Read(i, *in); err != nil {
		return err
	}
	return s.f(i, *in, dst)
}

package ir

import "sync"

// Lookup tables and Rare sub-programs are registered by package variables, so their ids follow the
// order of this package's source and are the same in every process of one build. Stored programs
// have names instead; see [TableByName] and [SubByName].

type subEntry struct {
	name   string
	params []DType
	build  func(b *Builder, args []Ref) Ref
	once   sync.Once
	prog   *Prog
}

var (
	tables []*Table
	subs   []*subEntry
)

// RegisterTable adds a table and returns the id that Lookup carries in Imm. Tables are registered
// only while the package initialises.
func RegisterTable(t *Table) uint64 {
	tables = append(tables, t)
	return uint64(len(tables) - 1)
}

// RegisterSub adds a sub-program of up to two parameters, written like an expansion, and returns
// the id that Rare carries in Imm. Subs are registered only while the package initialises.
func RegisterSub(name string, params []DType, build func(b *Builder, args []Ref) Ref) uint64 {
	subs = append(subs, &subEntry{name: name, params: params, build: build})
	return uint64(len(subs) - 1)
}

// TableByID returns a registered table, or nil.
func TableByID(id uint64) *Table {
	if id >= uint64(len(tables)) {
		return nil
	}
	return tables[id]
}

// TableByName returns the id of a table.
func TableByName(name string) (uint64, bool) {
	for i, t := range tables {
		if t.Name == name {
			return uint64(i), true
		}
	}
	return 0, false
}

// SubByID returns a registered sub-program in primitives, or nil. It is built on first use and
// shared.
func SubByID(id uint64) *Prog {
	if id >= uint64(len(subs)) {
		return nil
	}
	s := subs[id]
	s.once.Do(func() {
		var b Builder
		args := make([]Ref, len(s.params))
		for i, d := range s.params {
			args[i] = b.Emit(Param, d, uint64(i))
		}
		r := s.build(&b, args)
		s.prog = lower(&Prog{Name: s.name, Params: s.params, Code: b.Code, Results: []Ref{r}})
	})
	return s.prog
}

// SubByName returns the id of a sub-program.
func SubByName(name string) (uint64, bool) {
	for i, s := range subs {
		if s.name == name {
			return uint64(i), true
		}
	}
	return 0, false
}

package stream

// Marks are what a program that follows ops on tensors (package autodiff) has written on
// handles and values. The engine only keeps them: they lie where a Value has a byte to
// spare, so that a program without derivatives pays one comparison per operand.
type Marks uint8

const (
	// MarkLeaf is of a handle: ops on it are followed, whatever value Set gives it.
	MarkLeaf Marks = 1 << iota
	// MarkPlain is of a handle: ops on it are not followed, whatever its value says.
	MarkPlain
	// MarkFollowed is of a value: ops on handles that name it are followed.
	MarkFollowed
	// MarkRoom is of a value: there is room for more behind it, and results of ops on
	// it get room as well.
	MarkRoom
	// MarkSigned is of a value with room: there is room for a signature as well.
	MarkSigned

	ofHandle = MarkLeaf | MarkPlain
)

// Marks of a handle, and of the value that it names.
func (h *Value) Marks() Marks { return h.marks&ofHandle | h.now().marks&^ofHandle }

// Mark adds marks to a handle, or to the value in its place, that nobody else has yet.
func (h *Value) Mark(m Marks) { h.marks |= m }

// Second makes dst, a zero Value, one more handle of what h names, in the scope that
// owns h: the value lasts until both are given up. Nothing is run for it.
func Second(dst, h *Value) {
	Same(dst, h)
	Adopt(dst)
}

// Adopt makes a handle of Same last: the scope that it is in ends it, as it does others.
func Adopt(h *Value) {
	v := h.now()
	if v.home != nil {
		v.home.came(h, false, nil)
	}
	sc := h.owner()
	if sc == nil {
		return
	}
	sc.home.mu.Lock()
	sc.adopt(h)
	sc.home.mu.Unlock()
	if h.owner() == nil { // all scopes are closed
		v.strays()
	}
}

// LetGo gives up a handle that Second made, or that wants its value. Nobody asks later
// where that was.
func LetGo(h *Value) {
	v := h.now()
	if last := h.giveUp(&dropped); last != nil {
		last.ended(&dropped)
	} else {
		v.unwanted(h)
	}
}

// PlaceOf is where what belongs to a tensor goes: its stream, and the scope that owns it.
func PlaceOf(h *Value) Place { return Place{S: h.Home(), Scope: h.owner()} }

// Beside is PlaceOf of an op's result that is made in another way than by recording it: of
// the operands' scopes the innermost, of their streams the first that is not the device's
// default one. There is none for operands on two devices.
func Beside(hs ...*Value) (Place, bool) {
	var p Place
	for _, h := range hs {
		at := h.Home()
		switch {
		case at == nil || p.S != nil && at.dev != p.S.dev:
			return Place{}, false
		case p.S == nil || p.S == p.S.dev.def:
			p.S = at
		}
		if sc := h.owner(); deeper(sc, p.Scope) {
			p.Scope = sc
		}
	}
	return p, p.S != nil
}

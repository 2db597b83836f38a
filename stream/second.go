package stream

// Marks are notes on handles and values for a program that follows ops on tensors (package
// autodiff). The engine only keeps them. They use a spare byte of Value, so a program without
// derivatives pays one comparison per operand.
type Marks uint8

const (
	// MarkLeaf is on a handle: ops on it are followed, whatever value Set gives it.
	MarkLeaf Marks = 1 << iota
	// MarkPlain is on a handle: ops on it are not followed, whatever marks its value has.
	MarkPlain
	// MarkFollowed is on a value: ops on handles that name it are followed.
	MarkFollowed
	// MarkRoom is on a value: its allocation has room for more data behind the Value, and results
	// of ops on it get such room too.
	MarkRoom
	// MarkSigned is on a value with MarkRoom: the room is large enough for a signature.
	MarkSigned
	// MarkStep is on a handle that a composite op made for itself.
	MarkStep

	inherited = MarkLeaf | MarkPlain // by handles that Same makes
	ofHandle  = inherited | MarkStep
)

// Marks returns the marks of a handle and of the value that it names.
func (h *Value) Marks() Marks { return h.marks&ofHandle | h.now().marks&^ofHandle }

// Roomy reports whether h itself has MarkRoom, whatever value it names.
func (h *Value) Roomy() bool { return h.marks&MarkRoom != 0 }

// Mark adds marks to a handle or to the value in the same Value. Other goroutines must not have
// it yet.
func (h *Value) Mark(m Marks) { h.marks |= m }

// Unmark removes marks. Other goroutines must not have h yet.
func (h *Value) Unmark(m Marks) { h.marks &^= m }

// Second makes dst, a zero Value, one more handle of the value that h names, in the scope that
// owns h. The value lasts until both handles are given up. Second runs nothing.
func Second(dst, h *Value) {
	Same(dst, h)
	Adopt(dst)
}

// Adopt gives a handle that Same made to its scope. The scope's end then releases it, like its
// other handles.
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

// LetGo gives up a handle that Second made, or a handle that wants its value. It does not record
// where that happened.
func LetGo(h *Value) {
	v := h.now()
	if last := h.giveUp(&dropped); last != nil {
		last.ended(&dropped)
	} else {
		v.unwanted(h)
	}
}

// PlaceOf returns the place for results that belong to a tensor: the tensor's stream and the
// scope that owns it.
func PlaceOf(h *Value) Place { return Place{S: h.Home(), Scope: h.owner()} }

// Beside returns the place of an op's result, for results that are not made by recording the op.
// It has the innermost of the operands' scopes, and the first of their streams that is not the
// device's default one. It returns false for operands on two devices.
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

package stream

import (
	"slices"
	"sync"
)

// Set makes t name u's value, which both have from then on, and gives up what t
// named. Others never see t without a value.
func Set(t, u *Value) {
	if t == u || u.home == nil {
		return
	}
	for {
		from, to := t.home, u.home
		if from == nil || from == to {
			to.mu.Lock()
			if t.home == from && u.home == to {
				defer to.unlock()
				to.set(t, u, to.drop)
				return
			}
			to.mu.Unlock()
			continue
		}
		lockBoth(from, to)
		if t.home == from && u.home == to {
			old := new(Value) // dropped later: that may cut its stream, for which the other one must not wait
			defer func() {
				unlockBoth(from, to)
				Drop(old)
				to.dev.rethrow()
			}()
			to.set(t, u, old.take)
			return
		}
		unlockBoth(from, to)
	}
}

// twoStreams is held by who takes the locks of two streams. All others who wait for
// one hold none.
var twoStreams sync.Mutex

func lockBoth(a, b *Stream) {
	twoStreams.Lock()
	a.mu.Lock()
	b.mu.Lock()
}

func unlockBoth(a, b *Stream) {
	a.mu.Unlock()
	b.mu.Unlock()
	twoStreams.Unlock()
}

// set is Set for u of this stream, whose lock is held, as is that of t's. What t
// names is given to end.
func (s *Stream) set(t, u *Value, end func(*Value)) {
	u, err := s.readable(u)
	if t == u || t.state == stShares && t.ext.of == u {
		return // they share it since an earlier Set
	}
	if t.home != nil {
		if !s.leaveToOthers(t) {
			end(t)
		}
		t.state, t.mem, t.ext = stNone, nil, nil
	}
	if err != nil && u.state != stFailed {
		failIn(t, s, nil, "set", err, nil)
		return
	}
	t.take(u)
	if u.state != stFailed { // an error is nobody's in particular
		with := append(u.ext.others(), u)
		u.mem, u.ext, u.state = nil, new(ext), stShares
		t.share(with)
	} else {
		t.share(nil)
	}
	if t.owner() == nil {
		s.watch(t)
	}
}

// A value that several handles have is held by one of them. The others say whose
// it is, and one of those takes it over when that handle gives it up: so whoever
// looks at a value or a queue finds one handle.

// others are the handles that share what the holder with this ext holds.
func (x *ext) others() []*Value {
	if x == nil {
		return nil
	}
	return x.sharers
}

// become changes what a value has in ext, but for who shares it.
func (v *Value) become(st state, x *ext) {
	others := v.ext.others()
	v.state, v.ext = st, x
	v.share(others)
}

// share makes v the holder of what these handles share with it.
func (v *Value) share(with []*Value) {
	for _, o := range with {
		o.ext.of = v
	}
	switch {
	case len(with) > 0:
		x := ext{} // a recipe's is that of several values
		if v.ext != nil {
			x = *v.ext
		}
		x.sharers = with
		v.ext = &x
	case v.ext != nil && len(v.ext.sharers) > 0:
		x := *v.ext
		x.sharers = nil
		v.ext = &x
	}
}

// leaveToOthers has v give up its part of what it shares; false where it shares
// nothing. The lock is held.
func (s *Stream) leaveToOthers(v *Value) bool {
	if v.state == stShares {
		holder := v.ext.of
		holder.share(slices.DeleteFunc(slices.Clone(holder.ext.sharers), func(o *Value) bool { return o == v }))
		return true
	}
	others := v.ext.others()
	if len(others) == 0 {
		return false
	}
	heir := others[0]
	heir.ext = nil
	heir.take(v)
	heir.share(others[1:])
	v.mem = nil
	v.share(nil)
	if heir.owner() == nil {
		s.watch(heir)
	}
	return true
}

// take gives a handle what another one names. The lock of its stream is held.
func (v *Value) take(u *Value) {
	if v.home != u.home { // nothing is written that does not change: others may look
		v.home = u.home
	}
	if v.dt != u.dt || v.form != u.form {
		v.dt, v.form = u.dt, u.form
	}
	v.mem, v.ext, v.gen, v.id, v.state = u.mem, u.ext, u.gen, u.id, u.state
	if s := v.home; (v.state == stPending || v.state == stReady) && v.gen == s.gen {
		s.q.Slots[v.id].H.v = v
	}
}

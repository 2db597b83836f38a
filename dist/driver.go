package dist

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/millrace-go/millrace/dist/internal/launcher"
)

// Driver moves bytes between the ranks of a job. It adds nothing and checks nothing that the World
// can check.
//
// One goroutine, locked to its thread, opens a driver and calls all its methods. Memory that is
// passed to a method belongs to the driver until the Pending is done. All ranks begin their
// collectives in one order; several may be pending.
type Driver interface {
	Info() Info
	// AllToAll sends send[sendAt[r]:sendAt[r+1]] to each other rank r, and receives
	// recv[recvAt[r]:recvAt[r+1]] from it. Both lists have Size+1 offsets. The part of the own rank is
	// not moved.
	AllToAll(send, recv []byte, sendAt, recvAt []int) (Pending, error)
	// AllGather sends all of send to every rank, itself included, and receives
	// recv[recvAt[r]:recvAt[r+1]] from each rank r.
	AllGather(send, recv []byte, recvAt []int) (Pending, error)
	// Broadcast sends buf of rank root to buf of every other rank.
	Broadcast(buf []byte, root int) (Pending, error)
	// Note sends a text of at most MaxNote bytes to one rank, apart from all collectives. It does not
	// wait.
	Note(to int, text []byte) error
	// Notes returns a note that has arrived. Those of one sender arrive in their order.
	Notes() (from int, text []byte, ok bool)
	// Poll lets pending operations proceed, and reports whether one of them, or a note, is complete.
	Poll() (some bool, err error)
	// Abort ends all processes of the job. It may not return.
	Abort(code int)
	// Close ends the use of a driver that has nothing pending. All ranks call it.
	Close() error
}

// Pending is a collective under way.
type Pending interface {
	// Done reports whether the operation was complete, or had failed, at the last Poll.
	Done() (bool, error)
}

// Info is what a driver says about its rank.
type Info struct {
	Rank, Size           int
	LocalRank, LocalSize int    // among the ranks of one machine
	Host                 string // the machine's name
	Library              string // what moves the bytes, with its version
}

// MaxNote is the longest note in bytes.
const MaxNote = 1024

// Opener is what a driver registers.
type Opener struct {
	// Open joins the job that a launcher started this process for.
	Open func(context.Context) (Driver, error)
	// Launched names the launcher that started this process, and how many ranks it says the job has;
	// "" and 0 if none did.
	Launched func() (by string, ranks int)
}

var registry struct {
	sync.Mutex
	openers map[string]Opener
}

// Register makes a driver available by name. It panics if o lacks a function or the name is taken,
// which only happens in a program with two drivers of one name.
func Register(name string, o Opener) {
	registry.Lock()
	defer registry.Unlock()
	if o.Open == nil || o.Launched == nil {
		panic("millrace/dist: Register of a nil driver " + name)
	}
	if _, dup := registry.openers[name]; dup {
		panic("millrace/dist: Register called twice for driver " + name)
	}
	if registry.openers == nil {
		registry.openers = map[string]Opener{}
	}
	registry.openers[name] = o
}

// Drivers returns the names of the registered drivers, sorted.
func Drivers() []string {
	registry.Lock()
	defer registry.Unlock()
	return slices.Sorted(maps.Keys(registry.openers))
}

// opener returns the driver of a name. For the name "" it is the first driver, in the order of
// names, that a launcher started this process for, or else one that makes a job of one rank. That is
// refused if a launcher started several.
func opener(name string) (Opener, error) {
	names := Drivers()
	registry.Lock()
	defer registry.Unlock()
	if name != "" {
		o, ok := registry.openers[name]
		if !ok {
			return o, fmt.Errorf("there is no driver %q (registered: %s); import its package, such as dist/mpi", name, strings.Join(names, ", "))
		}
		return o, nil
	}
	for _, n := range names {
		if by, _ := registry.openers[n].Launched(); by != "" {
			return registry.openers[n], nil
		}
	}
	if l := launcher.Find(); l.Ranks > 1 {
		return Opener{}, fmt.Errorf("%s started %d ranks, but no driver for it is registered; import dist/mpi", l.By, l.Ranks)
	}
	return Opener{Open: openSingle}, nil
}

var errSingle = errors.New("a job of one rank has no other rank")

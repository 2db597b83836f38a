package gomlxbackend

import (
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/pkg/errors"
)

// Replace makes a backend's name mean Millrace, for programs and libraries that ask
// GoMLX for that backend and leave no choice, as github.com/knights-analytics/hugot
// asks for "go":
//
//	func main() {
//		if err := gomlxbackend.Replace("go", ""); err != nil {
//			log.Fatal(err)
//		}
//		session, err := hugot.NewGoSession(ctx) // computes on Millrace
//
// Backends opened under that name from now on are those of New with config, or with
// what follows the name in the request, as in "go:threads=2": options of Millrace,
// and not of the backend replaced. They call themselves "millrace". Where nothing is
// asked for and the replaced name was registered first, they are GoMLX's default.
// Those opened before stay what they are.
//
// The name must be registered, which the import of its package does before main
// begins: for another name Replace would have no effect, and a later registration
// would undo it, so it is an error. That is also how to undo it:
// compute.Register("go", gobackend.New). GoMLX does not guard its names, so
// call it before other goroutines open backends.
func Replace(name, config string) error {
	switch known := compute.List(); {
	case name == Name:
		return errors.Errorf("Replace: %q cannot replace itself", name)
	case !slices.Contains(known, name):
		slices.Sort(known)
		return errors.Errorf("Replace: %q is not registered, only %s: import its package, and call Replace in main", name, strings.Join(known, ", "))
	}
	if _, err := parseConfig(config); err != nil {
		return errors.WithMessagef(err, "Replace of %q: config %q", name, config)
	}
	compute.Register(name, func(request string) (compute.Backend, error) {
		if request == "" {
			request = config
		}
		b, err := New(request)
		return b, errors.WithMessagef(err, "backend %q, which is replaced", name)
	})
	return nil
}

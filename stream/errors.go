package stream

import "github.com/millrace-go/millrace/internal/operror"

func newOpError(op string, err error, args []Arg) *operror.Error {
	e := &operror.Error{Op: op, Caller: operror.Caller(), Err: err}
	for _, a := range args {
		if a.V != nil {
			e.Shapes = append(e.Shapes, a.V.Shape())
		}
	}
	return e
}

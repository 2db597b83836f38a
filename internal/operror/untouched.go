package operror

// Untouched is the error of a host op that began nothing: its memory is not in use. After other
// errors a library may still read or write it.
type Untouched struct{ Err error }

func (u *Untouched) Error() string { return u.Err.Error() }

// Unwrap returns the error itself.
func (u *Untouched) Unwrap() error { return u.Err }

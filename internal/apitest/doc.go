// Package apitest runs tensor programs of package ir through the public API,
// so that what users call is compared with what the oracle says. Its tests
// cover every op, random programs under random options, many goroutines, the
// memory limit and the counters.
//
// Engine part: no compatibility promise; use package millrace.
package apitest

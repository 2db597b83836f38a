// Package nocache keeps tests away from the user's cache: a test binary that imports it for its
// side effect uses no cache unless MILLRACE_CACHE, or a test's options, name one. The results of a
// test must not depend on earlier runs.
//
// Input: the environment. Output: MILLRACE_CACHE=off if the variable is not set. Read nocache.go
// first.
//
// Engine part: no compatibility promise; use package millrace.
package nocache

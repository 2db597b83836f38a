// Package plancache keeps what the engine would have to work out again in the
// next process: bytes under a kind and a key, in a directory of the user's own.
// It knows nothing of what the bytes mean.
//
// A cache is a directory with one file per entry, named by the hash of kind and
// key. An entry is written to a temporary file, flushed and renamed, so that
// any number of processes may use a directory at once and be killed at any
// moment: there are only complete entries, and files whose header, length or
// hash say that they are none, which are misses. There is no index, so opening
// costs the same whatever the cache holds.
//
// What is found is trusted as far as its directory is: compiled objects come
// from here. So a directory that others could write to is refused.
// docs/plancache.md has the format and the rules.
//
// Engine part: no compatibility promise; use package millrace.
package plancache

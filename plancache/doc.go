// Package plancache stores results that the next process would otherwise have to work out again:
// bytes under a kind and a key, in a directory of the user. It does not interpret the bytes.
//
// A cache is a directory with one file per entry, named by the hash of kind and key. An entry is
// written to a temporary file, flushed and renamed. So any number of processes may use a directory
// at once and be killed at any moment. Every file is either a complete entry, or its header,
// length or hash shows that it is not; then it is a miss. There is no index, so the time to open a
// cache does not depend on its size.
//
// An entry is trusted as much as its directory, because some entries are compiled objects. So a
// directory that others could write to is refused. docs/plancache.md has the format and the rules.
//
// Input: a kind, a key and bytes. Output: the bytes under a kind and a key, or a miss. Read
// cache.go first.
//
// Engine part: no compatibility promise; use package millrace.
package plancache

// Package lookup finds what earlier runs found out: in bundles that the program brought, and in the
// cache on disk.
//
// Input: the kind, scope and key of an entry. Output: its bytes, or a miss. Read finder.go first.
//
// Engine part: no compatibility promise; use package millrace.
package lookup

// Package hostinfo describes the origin of figures: the machine, and the source of the measuring
// program.
//
// Input: files of the operating system, and this binary's build information. Output: a [Machine]
// and a version. Read hostinfo.go first.
//
// Engine part: no compatibility promise; use package millrace.
package hostinfo

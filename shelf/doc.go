// Package shelf finds what earlier runs found out: in bundles that the program brought, and in the
// cache on disk.
//
// Engine part: no compatibility promise; use package millrace.
package shelf

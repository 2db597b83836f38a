// Package shelf is where a device looks for what was found out before: in bundles that
// the program brought, and in the cache on disk.
//
// Engine part: no compatibility promise; use package millrace.
package shelf

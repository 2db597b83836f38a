// Package plans keeps a device's plans. It finds the one for a segment, in the trie, in
// bundles or on disk, has fusion explore what is new, looks for better plans in the
// background, and remembers and exports what it has.
//
// Engine part: no compatibility promise; use package millrace.
package plans

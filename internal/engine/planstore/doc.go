// Package planstore keeps the plans of a device. It finds the plan of a segment in the trie, in
// bundles or on disk, and lets package fusion explore new segments. It looks for better plans in
// the background, and saves and exports the plans it has.
//
// Input: a segment. Output: a [Known], its plan with programs and tunings. Read find.go first.
//
// Engine part: no compatibility promise; use package millrace.
package planstore

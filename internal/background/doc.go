// Package background does work in the background.
//
// Input: items. Output: calls of Do, one for each item, in order. Read queue.go first.
package background

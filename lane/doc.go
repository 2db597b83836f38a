// Package lane runs jobs: those of a lane in order, those of several lanes at once, each
// on the goroutine of whoever waits for it, else on one of the lane's own.
//
// Engine part: no compatibility promise; use package millrace.
package lane

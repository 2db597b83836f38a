// Package lane runs jobs. The jobs of one lane run in order; several lanes run at the same time. A
// job runs on the goroutine of a caller that waits for it, else on a goroutine of its lane.
//
// Engine part: no compatibility promise; use package millrace.
package lane

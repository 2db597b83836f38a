// Package jobqueue runs jobs. The jobs of one lane run in order; several lanes run at the same time. A
// job runs on the goroutine of a caller that waits for it, else on a goroutine of its lane.
//
// Input: jobs, each with its lane. Output: the same jobs run, and a [Moment] to wait for. Read
// lane.go first.
//
// Engine part: no compatibility promise; use package millrace.
package jobqueue

// Package queue holds the ops of a stream that have not run yet: in relative
// form, where tensors are numbered by first appearance and dimensions enter only
// as predicates local to an op, so that equal programs look equal whatever their
// sizes; and beside it what that form leaves out, the real shapes, scalars and
// handles, from which the ops as called are put together when they run.
//
// It knows nothing of plans or devices. It must not import segment or fusion.
//
// Engine part: no compatibility promise; use package millrace.
package queue

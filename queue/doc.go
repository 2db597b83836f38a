// Package queue holds the operations of a stream that have not run yet, in relative form: tensors
// are numbered by first appearance, and dimensions enter only as predicates local to an operation.
// So equal programs have equal forms, whatever their sizes. Beside the form it holds the real
// shapes, scalars and handles. From both it rebuilds the operations as called when they run.
//
// It knows nothing of plans or devices. It must not import segment or fusion.
//
// Input: an ir.Node and the handle of its result. Output: its [Key], and the recorded nodes. Read
// queue.go first.
//
// Engine part: no compatibility promise; use package millrace.
package queue

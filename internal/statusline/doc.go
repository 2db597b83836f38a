// Package statusline shows a program's progress: on a terminal in one line that changes, in a file
// or a pipe by a new line now and then.
//
// Input: messages. Output: lines on a terminal, file or pipe. Read statusline.go first.
//
// Engine part: no compatibility promise; use package millrace.
package statusline

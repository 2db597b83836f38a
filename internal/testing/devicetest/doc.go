// Package devicetest opens devices for tests.
//
// Input: the text of a device's options. Output: the device, closed when the test ends. Read
// open.go first.
//
// Engine part: no compatibility promise; use package millrace.
package devicetest

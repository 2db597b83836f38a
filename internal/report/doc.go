// Package report writes the page that shows what devices ran: one HTML file without references to
// other files. It does not depend on the engine.
//
// Input: a [Report], which package millrace fills. Output: HTML. Read page.go first.
package report

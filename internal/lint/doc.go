// Package lint implements the house rules: import ranks, the downloads of an importer of the
// module, the form of float products, file sizes and headers. Its tests run every rule over the
// module, so `go test ./...` is the linter and no tool has to be installed.
//
// Every rule reads all files of a package whatever their build constraints, and therefore finds
// violations of other platforms on this one.
//
// Input: the module's files. Output: one message for each violation. Read tree.go first.
package lint

// Package asmtest compares assemblers with objdump: it disassembles code, and makes random operands in
// memory. The tests of codegen/native's targets use it.
//
// Input: machine code, or random numbers. Output: a listing, or operands. Read asmtest.go first.
//
// Engine part: no compatibility promise; use package millrace.
package asmtest

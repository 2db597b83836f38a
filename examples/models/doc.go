// Package models has the networks that the example programs train and that fusebench train times.
// They are small, and written to be read and copied. run.go has the code that several of the
// programs share.
package models

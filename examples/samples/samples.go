// Package samples has small excerpts of data, from which the example programs learn if they are given no
// file.
package samples

import (
	"bytes"
	_ "embed"

	"github.com/millrace-go/millrace/data"
)

// digits are the first 300 of the 1,797 of UCI's optdigits test set (E. Alpaydin, C. Kaynak;
// CC BY 4.0).
//
//go:embed digits.csv
var digits []byte

// plays are the first lines of the text of Karpathy's char-rnn (MIT licence, 2022 Andrej
// Karpathy).
//
//go:embed input.txt
var plays string

// Digits reads handwritten digits: 64 pixels, 0 to 16, and a label in each line of a file. If path is
// empty, it returns the 300 digits of this package. X is (1, 8, 8).
func Digits(path string) (*data.Table, error) {
	opt := data.CSVOptions{Label: "-1", Classes: 10, Comment: '#', Shape: []int{1, 8, 8}}
	if path == "" {
		return data.ReadCSV(bytes.NewReader(digits), "digits.csv", opt)
	}
	return data.CSV(path, opt)
}

// Text reads a text. If path is empty, it returns the lines of Shakespeare's that this package has.
func Text(path string) (string, error) {
	if path == "" {
		return plays, nil
	}
	return data.ReadText(path)
}

// Package talk is what the driver of bench/peers and a contestant say to each
// other: lines of JSON on the contestant's standard input and output, one answer
// to each question. A contestant ends when its input does.
package talk

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// An Input is a file of raw little-endian elements, rows first.
type Input struct {
	Name  string `json:"name"`
	File  string `json:"file"`
	Shape []int  `json:"shape"`
}

// Work describes a computation for a contestant.
type Work struct {
	Workload string  `json:"workload"`
	DType    string  `json:"dtype"`
	Threads  int     `json:"threads"`
	Inputs   []Input `json:"inputs"`
}

// A Question asks for one of three things: to make ready for a workload, to run it
// so many times, or to write the result of the last run to a file, raw and
// little-endian. Runs of one question are its steps 0, 1 and so on.
type Question struct {
	Work  *Work  `json:"work,omitempty"`
	Run   int    `json:"run,omitempty"`
	Write string `json:"write,omitempty"`
}

// An Answer has the field that the question asks for, or one of the last two.
type Answer struct {
	Ready   bool    `json:"ready,omitempty"`
	Seconds float64 `json:"seconds,omitempty"` // of one run, the mean of those asked for
	Wrote   int     `json:"wrote,omitempty"`   // elements

	Unsupported string `json:"unsupported,omitempty"` // why the library has no such thing
	Error       string `json:"error,omitempty"`
}

// A Program is a workload made ready.
type Program struct {
	// Run computes steps 0 to n-1 and returns the seconds that one took.
	Run func(n int) (float64, error)
	// Write writes the last run's result and says how many elements that are.
	Write func(file string) (int, error)
}

// Unsupported is the error of a workload that a library has no operations for.
type Unsupported string

func (u Unsupported) Error() string { return string(u) }

// Serve answers questions until there are no more. It is for contestants in Go.
func Serve(in io.Reader, out io.Writer, prepare func(Work) (*Program, error)) error {
	var p *Program
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var q Question
		err := json.Unmarshal(lines.Bytes(), &q)
		var a Answer
		if err == nil {
			a, err = answer(&p, q, prepare)
		}
		var none Unsupported
		switch {
		case errors.As(err, &none):
			a = Answer{Unsupported: none.Error()}
		case err != nil:
			a = Answer{Error: err.Error()}
		}
		line, err := json.Marshal(a)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return lines.Err()
}

func answer(p **Program, q Question, prepare func(Work) (*Program, error)) (a Answer, err error) {
	switch {
	case q.Work != nil:
		*p, err = prepare(*q.Work)
		a.Ready = err == nil
	case *p == nil:
		return a, errors.New("no workload yet")
	case q.Run > 0:
		a.Seconds, err = (*p).Run(q.Run)
	case q.Write != "":
		a.Wrote, err = (*p).Write(q.Write)
	default:
		return a, fmt.Errorf("unknown question %+v", q)
	}
	return a, err
}

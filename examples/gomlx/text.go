package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train"
)

// plays is the beginning of char-rnn's input.txt, scenes of Shakespeare's (MIT licence,
// 2022 Andrej Karpathy).
//
//go:embed testdata/plays.txt
var plays string

// text is a text as numbers of its characters, which are bytes.
type text struct {
	chars          []byte // by number
	tokens         []int32
	r              *rand.Rand
	batch, context int
}

// newText reads a file, or takes the scenes where there is none.
func newText(path string, batch, context int) (*text, error) {
	all := []byte(plays)
	if path != "" {
		var err error
		if all, err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	if len(all) <= context+1 {
		return nil, fmt.Errorf("a text of %d characters, for pieces of %d", len(all), context+1)
	}
	t := &text{r: rand.New(rand.NewPCG(3, 4)), batch: batch, context: context}
	t.chars = slices.Compact(slices.Sorted(slices.Values(all)))
	t.tokens = t.encode(all)
	return t, nil
}

// encode gives the characters' numbers; one that the text does not have is the next one
// that it has.
func (t *text) encode(s []byte) []int32 {
	tokens := make([]int32, len(s))
	for i, c := range s {
		at, _ := slices.BinarySearchFunc(t.chars, c, cmp.Compare[byte])
		tokens[i] = int32(min(at, len(t.chars)-1))
	}
	return tokens
}

// next is a batch of pieces; of each place the label is the character behind it.
func (t *text) next() train.Batch {
	var tokens, labels []int32
	for range t.batch {
		at := t.r.IntN(len(t.tokens) - t.context)
		tokens = append(tokens, t.tokens[at:at+t.context]...)
		labels = append(labels, t.tokens[at+1:at+t.context+1]...)
	}
	return train.Batch{
		Inputs: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(tokens, t.batch, t.context)},
		Labels: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(labels, t.batch, t.context, 1)},
	}
}

package data

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/sniff"
)

// ReadText reads a text file in UTF-8; invalid bytes are an error that names their place.
func ReadText(path string) (string, error) {
	b, err := sniff.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("data: %w", err)
	}
	text := string(b)
	if why := sniff.NotText(b); why != "" {
		return "", fmt.Errorf("data: %s: %w", path, bad("no text: %s", why))
	}
	if err := checkText(text); err != nil {
		return "", fmt.Errorf("data: %s: %w", path, err)
	}
	return text, nil
}

func checkText(text string) error {
	for i, r := range text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return bad("byte %d is not UTF-8", i)
			}
		}
	}
	return nil
}

// Vocabulary numbers characters, the tokens of a language model, from 0 in the order of their code
// points.
type Vocabulary struct {
	runes []rune
	ids   map[rune]int32
}

// NewVocabulary makes the vocabulary of a text's characters. An empty text or invalid UTF-8 is an
// error. The same text, or [Vocabulary.String], gives the same vocabulary in another run.
func NewVocabulary(text string) (*Vocabulary, error) {
	if text == "" {
		return nil, errors.New("data: vocabulary: the text has no characters")
	}
	if err := checkText(text); err != nil {
		return nil, fmt.Errorf("data: vocabulary: %w", err)
	}
	v := &Vocabulary{ids: map[rune]int32{}}
	for _, r := range text {
		v.ids[r] = 0
	}
	v.runes = slices.Sorted(maps.Keys(v.ids))
	for id, r := range v.runes {
		v.ids[r] = int32(id)
	}
	return v, nil
}

// Len is the number of characters.
func (v *Vocabulary) Len() int { return len(v.runes) }

// String returns all characters, in order.
func (v *Vocabulary) String() string { return string(v.runes) }

// Encode returns the tokens of a text. A character outside the vocabulary is an error.
func (v *Vocabulary) Encode(text string) ([]int32, error) {
	if err := checkText(text); err != nil {
		return nil, fmt.Errorf("data: encode: %w", err)
	}
	ids := make([]int32, 0, utf8.RuneCountInString(text))
	for i, r := range text {
		id, ok := v.ids[r]
		if !ok {
			return nil, fmt.Errorf("data: encode: byte %d: %q is not one of the %d characters", i, r, len(v.runes))
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// Decode returns the text of tokens. A token out of range is an error.
func (v *Vocabulary) Decode(ids []int32) (string, error) {
	var b strings.Builder
	for i, id := range ids {
		if id < 0 || int(id) >= len(v.runes) {
			return "", fmt.Errorf("data: decode: token %d is %d, of a vocabulary of %d", i, id, len(v.runes))
		}
		b.WriteRune(v.runes[id])
	}
	return b.String(), nil
}

// Windows makes records for a language model from a long sequence of tokens: X is length tokens, Y
// the token after each of them, both Int32. Record i begins at token i*stride. With stride 1 a
// shuffling loader gives windows at random places; with stride length a loader without shuffling
// gives the text from beginning to end. The tokens are not copied and must not change; too few
// tokens for one window are an error.
func Windows(tokens []int32, length, stride int) (Source, error) {
	if length < 1 || stride < 1 {
		return nil, fmt.Errorf("data: windows: length %d and stride %d are not both above 0", length, stride)
	}
	if len(tokens) <= length {
		return nil, fmt.Errorf("data: windows: %d tokens are fewer than a window of %d and the token after it", len(tokens), length)
	}
	return &windows{tokens, length, stride}, nil
}

type windows struct {
	tokens         []int32
	length, stride int
}

func (s *windows) Len() int { return (len(s.tokens)-s.length-1)/s.stride + 1 }

func (s *windows) Fields() []Field {
	return []Field{{"x", millrace.Int32, []int{s.length}}, {"y", millrace.Int32, []int{s.length}}}
}

func (s *windows) Read(i int, dst []any) error {
	at := i * s.stride
	copy(dst[0].([]int32), s.tokens[at:])
	copy(dst[1].([]int32), s.tokens[at+1:])
	return nil
}

package talk

import (
	"encoding/binary"
	"math"
	"os"
)

// WriteFloats writes a file as an Input names one, of float32.
func WriteFloats(file string, v []float32) error {
	b := make([]byte, 4*len(v))
	for i, f := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(f))
	}
	return os.WriteFile(file, b, 0o666)
}

// ReadFloats reads one.
func ReadFloats(file string) ([]float32, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v, nil
}

package plancache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// FormatVersion is the version of the files in the folder of that name: of the entries' header, not
// of their contents.
const FormatVersion = 1

// The file of an entry; numbers are little-endian:
//
//	magic    8 bytes
//	version  uint32
//	kind     uint32, the length of the kind
//	key      uint32, the length of the key
//	value    uint64, the length of the value
//	the kind, the key and the value
//	hash     uint64, xxhash64 of everything before it
const (
	magic      = "mrentry\n"
	headerSize = len(magic) + 4 + 4 + 4 + 8
	hashSize   = 8
)

// maxEntry is the largest size of an entry's file; a larger file is invalid.
const maxEntry = 256 << 20

// Entry is the content of a file of a cache.
type Entry struct {
	Kind, Key string
	Value     []byte
}

// SplitKey splits an entry's key into its scope, which is the first line, and the rest. The scope
// says for what the entry was made, and so why it may be of no use to another device. The rest says
// what the entry describes. A key with one line, or with an empty first line, has no scope.
func SplitKey(key string) (scope, rest string) {
	scope, rest, lines := strings.Cut(key, "\n")
	if !lines || scope == "" {
		return "", key
	}
	return scope, rest
}

// JoinKey joins a scope and a rest to a key.
func JoinKey(scope, rest string) string {
	if scope == "" {
		return rest
	}
	return scope + "\n" + rest
}

// Name returns the name of the entry's file in a cache.
func (e *Entry) Name() string { return nameOf(e.Kind, e.Key) }

// Errors of invalid files. Each is a miss.
var (
	errLength  = errors.New("its length differs from the length in its header")
	errMagic   = errors.New("it does not begin as an entry does")
	errVersion = errors.New("it has another format version")
	errHash    = errors.New("its bytes do not match their checksum")
	errForeign = errors.New("it belongs to another key")
)

// encode returns the contents of an entry's file.
func encode(kind, key string, value []byte) []byte {
	b := make([]byte, 0, headerSize+len(kind)+len(key)+len(value)+hashSize)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, FormatVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(kind)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(key)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(value)))
	b = append(b, kind...)
	b = append(b, key...)
	b = append(b, value...)
	return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
}

// decode reads the contents of a file. The value is a slice of b.
func decode(b []byte) (Entry, error) {
	if len(b) < headerSize+hashSize {
		return Entry{}, errLength
	}
	if string(b[:len(magic)]) != magic {
		return Entry{}, errMagic
	}
	at := b[len(magic):]
	if binary.LittleEndian.Uint32(at) != FormatVersion {
		return Entry{}, errVersion
	}
	kind := uint64(binary.LittleEndian.Uint32(at[4:]))
	key := uint64(binary.LittleEndian.Uint32(at[8:]))
	value := binary.LittleEndian.Uint64(at[12:])
	rest := uint64(len(b) - headerSize - hashSize)
	if value > rest || kind+key != rest-value {
		return Entry{}, errLength
	}
	end := len(b) - hashSize
	if xxhash.Sum64(b[:end]) != binary.LittleEndian.Uint64(b[end:]) {
		return Entry{}, errHash
	}
	body := b[headerSize:end:end]
	return Entry{string(body[:kind]), string(body[kind : kind+key]), body[kind+key:]}, nil
}

// nameOf returns the name of the file of a kind and key. It contains the kind, which people and
// listings can then see.
func nameOf(kind, key string) string {
	return fmt.Sprintf("%s-%016x", kind, xxhash.Sum64String(key))
}

// validKind reports a kind that can be part of a file's name.
func validKind(kind string) bool {
	for i := range len(kind) {
		if kind[i] < 'a' || kind[i] > 'z' {
			return false
		}
	}
	return kind != "" && len(kind) <= 16 && kind != temporary
}

//go:build cgo && unix

package ccode

import (
	"fmt"
	"testing"
)

// TestCompileLog checks that both ends of a compiler's output are kept, whatever its pieces.
func TestCompileLog(t *testing.T) {
	text := make([]byte, 10*logPart)
	for i := range text {
		text[i] = 'a' + byte(i%26)
	}
	for _, n := range []int{0, 1, logPart, logPart + 1, 2 * logPart, 2*logPart + 1, 3*logPart - 7, len(text)} {
		for _, piece := range []int{1, 7, logPart - 1, logPart, 5 * logPart, len(text)} {
			var l logEnds
			for at := 0; at < n; at += piece {
				if done, err := l.Write(text[at:min(at+piece, n)]); err != nil || done != min(at+piece, n)-at {
					t.Fatal(done, err)
				}
			}
			want := string(text[:n])
			if over := n - 2*logPart; over > 0 {
				want = fmt.Sprintf("%s\n... %d bytes left out ...\n%s", text[:logPart], over, text[n-logPart:n])
			}
			if l.String() != want {
				t.Errorf("%d bytes in pieces of %d: %d bytes are kept, not the ends", n, piece, len(l.String()))
			}
			if room := cap(l.head) + cap(l.tail); room > 4*logPart {
				t.Errorf("%d bytes in pieces of %d: kept in %d", n, piece, room)
			}
		}
	}
}

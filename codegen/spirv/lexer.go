package spirv

import "strings"

// lexer splits a text into tokens.
type lexer struct {
	text  string
	at    int    // offset behind token
	token string // the current token; "" at the end of the text
	line  int    // the current token's line
}

func newLexer(text string) lexer {
	l := lexer{text: text, line: 1}
	l.next()
	return l
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

func isWord(b byte) bool {
	return isDigit(b) || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b == '_'
}

// isName reports whether a token can name a variable or a function.
func isName(token string) bool { return token != "" && isWord(token[0]) && !isDigit(token[0]) }

// next moves to the next token.
func (l *lexer) next() {
	for l.at < len(l.text) && strings.IndexByte(" \t\n", l.text[l.at]) >= 0 {
		if l.text[l.at] == '\n' {
			l.line++
		}
		l.at++
	}
	rest := l.text[l.at:]
	n := min(1, len(rest))
	switch {
	case rest == "":
	case isDigit(rest[0]):
		hex := strings.HasPrefix(rest, "0x")
		for n < len(rest) && (isWord(rest[n]) || rest[n] == '.' || !hex && rest[n-1] == 'e' && strings.IndexByte("+-", rest[n]) >= 0) {
			n++
		}
	case isWord(rest[0]):
		for n < len(rest) && isWord(rest[n]) {
			n++
		}
	case len(rest) > 1 && binding[rest[:2]] > 0: // an operator of two characters
		n = 2
	}
	l.token = rest[:n]
	l.at += n
}

// take returns the current token and moves on.
func (l *lexer) take() string {
	t := l.token
	l.next()
	return t
}

// skip moves past the token t if it is the current one.
func (l *lexer) skip(t string) bool {
	if l.token != t {
		return false
	}
	l.next()
	return true
}

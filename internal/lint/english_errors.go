package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
)

// errorPhrases are the phrases that texts of errors must not contain: those of comments, and more.
var errorPhrases = slices.Concat(phrases, []phrase{
	{regexp.MustCompile(`(?:\w+ )?\b(?:is|are|was|were) no \w+`), regexp.MustCompile(`^[Tt]here |no (?:longer|more)$`), "is not a, has no, or does not exist"},
	{regexp.MustCompile(`^(?:what|who|whoever|whatever) [^?]*$`), nil, "begin with the noun that is the subject"},
	{regexp.MustCompile(`\b(?:[Nn]obody|[Ss]omebody|[Aa]nybody)\b`), nil, "name the program, the user or the caller"},
	{regexp.MustCompile(`\b(?:asked for|in vain|by now)\b`), nil, "needed, given, without success, or nothing"},
	{regexp.MustCompile(`\b(?:is|are) to be\b`), nil, "must, cannot, or the verb itself"},
	{regexp.MustCompile(`^%\d*[dv] \w+(?: and %\d*[dv] \w+)? for (?:an? |the )?(?:\w+ of )?%`), nil, "write the verb: X were given for Y, X do not fit Y"},
})

// errorFuncs are the functions whose argument is the text of an error, and the methods with these names.
var errorFuncs = map[string]bool{
	"errors.New": true, "fmt.Errorf": true, "errorf": true, "shapeErr": true, "dtypeErr": true,
	"fail": true, "Fail": true, "failed": true, "refuse": true, "bad": true, "invalid": true,
}

// errorEnglish finds the phrases in a file's texts of errors, each with its place.
func (t *Tree) errorEnglish(f *File) []string {
	var bad []string
	check := func(e ast.Expr) {
		for _, msg := range checkEnglish(constantText(e), errorPhrases) {
			bad = append(bad, fmt.Sprintf("%s:%d: %s", f.Path, t.Fset.Position(e.Pos()).Line, msg))
		}
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if makesError(n.Fun) {
				for _, arg := range n.Args {
					check(arg)
				}
			}
		case *ast.FuncDecl:
			if n.Recv != nil && n.Name.Name == "Error" && n.Body != nil {
				ast.Inspect(n.Body, func(n ast.Node) bool {
					if lit, ok := n.(*ast.BasicLit); ok {
						check(lit)
					}
					return true
				})
			}
		}
		return true
	})
	return bad
}

// makesError reports whether a call of fun makes an error of a text.
func makesError(fun ast.Expr) bool {
	switch fun := fun.(type) {
	case *ast.Ident:
		return errorFuncs[fun.Name]
	case *ast.SelectorExpr:
		pkg, ok := fun.X.(*ast.Ident)
		return errorFuncs[fun.Sel.Name] || ok && errorFuncs[pkg.Name+"."+fun.Sel.Name]
	}
	return false
}

// constantText joins the string literals of a sum. Other operands count as %v.
func constantText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value) // the parser has checked it
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return constantText(e.X) + constantText(e.Y)
		}
	case *ast.ParenExpr:
		return constantText(e.X)
	}
	return "%v"
}

package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// sentencePackages are the folders in whose texts of errors each text is a sentence: it has a verb.
// Texts of errors outside of functions are exempt, because other texts follow them.
var sentencePackages = map[string]bool{".": true, "nn": true, "optim": true, "autodiff": true, "linalg": true, "imagex": true, "data": true, "npy": true, "safetensors": true, "gonumx": true, "plancache": true, "debug": true, "serve": true, "dist/files": true}

// verbs are the verbs of errors. A list tells "gradients" from "gives".
var verbs = regexp.MustCompile(`\b(?:is|are|was|were|has|have|had|does|do|did|cannot|can|could|must|may|will|would|\w+ed|\w+n't|` +
	`adds|allows|begins|belongs|broadcasts|came|comes|contains|depends|differs?|ends|exists?|expects|fits?|found|gave|gives?|goes|holds|keeps|lacks|leaves|left|lost|` +
	`made|makes|means|names|needs?|occurs|ran|reads|repeats|returns|runs|says|sets|stops|takes?|took|uses|writes)\b`)

// openText is a text that ends in, or is, the text of another error or a value.
var openText = regexp.MustCompile(`(?:^|: )%[a-z]$`)

// lacksVerb returns the message of a text that is not a sentence.
func lacksVerb(text string) []string {
	if !strings.Contains(text, " ") || openText.MatchString(text) || verbs.MatchString(text) {
		return nil
	}
	return []string{fmt.Sprintf("%q has no verb (or internal/lint does not know it): write a sentence", text)}
}

// errorEnglish finds the phrases in a file's texts of errors, each with its place.
func (t *Tree) errorEnglish(f *File) []string {
	var bad []string
	check := func(e ast.Expr, sentence bool) {
		text := constantText(e)
		msgs := checkEnglish(text, errorPhrases)
		if sentence {
			msgs = append(msgs, lacksVerb(text)...)
		}
		for _, msg := range msgs {
			bad = append(bad, fmt.Sprintf("%s:%d: %s", f.Path, t.Fset.Position(e.Pos()).Line, msg))
		}
	}
	for _, decl := range f.AST.Decls {
		_, inFunc := decl.(*ast.FuncDecl)
		sentence := inFunc && sentencePackages[path.Dir(f.Path)]
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if makesError(n.Fun) {
					for _, arg := range n.Args {
						check(arg, sentence)
					}
				}
			case *ast.FuncDecl:
				if n.Recv != nil && n.Name.Name == "Error" && n.Body != nil {
					ast.Inspect(n.Body, func(n ast.Node) bool {
						if lit, ok := n.(*ast.BasicLit); ok {
							check(lit, false)
						}
						return true
					})
				}
			}
			return true
		})
	}
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

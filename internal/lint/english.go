package lint

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"strings"
)

// A phrase is a form of words that is hard to read.
type phrase struct {
	find *regexp.Regexp
	not  *regexp.Regexp // a match in which this is found is correct English
	say  string
}

// phrases are matched against one sentence at a time.
var phrases = []phrase{
	{regexp.MustCompile(`\b(?:has|have|had|having) (?:[\w'’-]+ ){1,5}be\b`), regexp.MustCompile(`to be|than can be`), "who does what? write the verb (X makes Y Z)"},
	{regexp.MustCompile(`^(?:What|Who|Whoever|Whatever) [^?]*$`), nil, "begin with the noun that is the subject"},
	{regexp.MustCompile(`\b(?:[Dd]ear|[Dd]earer|[Dd]earest)\b`), nil, "costly to recompute"},
	{regexp.MustCompile(`\b(?:[Yy]oung|[Yy]ounger|[Yy]oungest)\b`), nil, "recent"},
	{regexp.MustCompile(`\b(?:[Ww]eary|[Gg]hosts?|[Cc]ook(?:s|ed|ing)?|[Ll]one)\b`), nil, "use the plain noun or verb"},
	{regexp.MustCompile(`\bso that\b.*\bso that\b`), nil, "two sentences"},
	{regexp.MustCompile(`\b(?:somebody|anybody|he who|those who) (?:reads?|asks?|records?|looks?|runs?|waits?|needs?|wants?|sees?|knows?|uses?)\b`), nil, "name the reader: the caller, another stream, a kernel"},
	{regexp.MustCompile(`\bis what [^,.]* (?:is|are|was|were|has|have|does|do)\b`), nil, "say it without \"is what\""},
	{regexp.MustCompile(`\b(?:lies|lie|lay|lying) (?:in|on|at|behind|beside|there|elsewhere|where|together|apart)\b`), nil, "is stored, is, starts"},
}

// sentenceEnd separates sentences, and the parts before and after a colon or semicolon.
var sentenceEnd = regexp.MustCompile(`[.!:;]\s+`)

// checkEnglish finds phrases of a list in running text and suggests a correction for each.
func checkEnglish(text string, phrases []phrase) []string {
	var bad []string
	text = strings.Join(strings.Fields(text), " ")
	for at := 0; at < len(text); {
		end := len(text)
		if m := sentenceEnd.FindStringIndex(text[at:]); m != nil {
			end = at + m[1]
		}
		sentence := strings.TrimRight(text[at:end], ".!:; ")
		at = end
		for _, p := range phrases {
			for _, m := range p.find.FindAllString(sentence, -1) {
				if p.not == nil || !p.not.MatchString(m) {
					bad = append(bad, fmt.Sprintf("%q: %s", m, p.say))
				}
			}
		}
	}
	return bad
}

// mark begins an item of a list or a quotation.
var mark = regexp.MustCompile(`^ {0,3}(?:[*>-]|\d+\.)\s+`)

// prose keeps the sentences of a text: no programs, tables or headings.
func prose(text string) string {
	var b strings.Builder
	for line := range strings.Lines(fenced.ReplaceAllString(text, "")) {
		switch {
		case strings.HasPrefix(line, "    "), strings.HasPrefix(line, "\t"), strings.HasPrefix(line, "|"), strings.HasPrefix(line, "#"):
			line = ". \n"
		case mark.MatchString(line):
			line = ". " + mark.ReplaceAllString(line, "")
		case strings.TrimSpace(line) == "":
			line = ". \n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// English finds the phrases of all comments, pages and texts of errors, by folder, each with its place.
func (t *Tree) English(pages map[string]string) map[string][]string {
	found := map[string][]string{}
	for _, dir := range t.Dirs() {
		for _, f := range t.Pkgs[dir].Files {
			if generated.Match(f.Src) {
				continue
			}
			if !f.Test {
				found[dir] = append(found[dir], t.errorEnglish(f)...)
			}
			for _, g := range f.AST.Comments {
				for _, msg := range checkEnglish(prose(g.Text()), phrases) {
					found[dir] = append(found[dir], fmt.Sprintf("%s:%d: %s", f.Path, t.Fset.Position(g.Pos()).Line, msg))
				}
			}
		}
	}
	for name, text := range pages {
		dir := path.Dir(name)
		for _, msg := range checkEnglish(prose(text), phrases) {
			found[dir] = append(found[dir], fmt.Sprintf("%s: %s", name, msg))
		}
	}
	maps.DeleteFunc(found, func(_ string, list []string) bool { return len(list) == 0 })
	return found
}

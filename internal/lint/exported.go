package lint

import "go/ast"

// exported has the exported names of a package: functions, types, constants and variables in decls,
// methods by their receiver's type in methods.
type exported struct {
	decls   map[string]bool
	methods map[string]map[string]bool
}

func exportedOf(files []*File) exported {
	e := exported{map[string]bool{}, map[string]map[string]bool{}}
	for _, file := range files {
		if file.Test {
			continue
		}
		f := file.AST
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					e.decls[d.Name.Name] = true
					continue
				}
				typ := d.Recv.List[0].Type
				if star, ok := typ.(*ast.StarExpr); ok {
					typ = star.X
				}
				if id, ok := typ.(*ast.Ident); ok {
					if e.methods[id.Name] == nil {
						e.methods[id.Name] = map[string]bool{}
					}
					e.methods[id.Name][d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						e.decls[s.Name.Name] = true
					case *ast.ValueSpec:
						for _, n := range s.Names {
							e.decls[n.Name] = true
						}
					}
				}
			}
		}
	}
	return e
}

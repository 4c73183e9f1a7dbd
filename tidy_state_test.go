package onereply_test

import (
	"go/ast"
	"go/token"
)

// changedState finds package-level variables that some function of their
// package assigns to. It goes by name and skips functions that declare the same
// name themselves, which is enough for a tripwire.
func changedState(t *tree) (faults []fault) {
	for _, files := range t.packages() {
		vars := map[string]bool{}
		for _, f := range files {
			if !f.test() {
				packageVars(f, vars)
			}
		}
		for _, f := range files {
			if f.test() {
				continue
			}
			for _, d := range f.tree.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
					faults = append(faults, assignments(f, fn, vars)...)
				}
			}
		}
	}
	return faults
}

func packageVars(f *source, vars map[string]bool) {
	for _, d := range f.tree.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			for _, name := range s.(*ast.ValueSpec).Names {
				vars[name.Name] = name.Name != "_"
			}
		}
	}
}

func assignments(f *source, fn *ast.FuncDecl, vars map[string]bool) (faults []fault) {
	local := localNames(fn)
	report := func(e ast.Expr) {
		if name := rootName(e); name != "" && vars[name] && !local[name] {
			faults = append(faults, f.fault(e, "%s changes package-level %s: keep state in a value that its owner passes on", fn.Name.Name, name))
		}
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					report(e)
				}
			}
		case *ast.IncDecStmt:
			report(n.X)
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "delete" && len(n.Args) == 2 {
				report(n.Args[0])
			}
		}
		return true
	})
	return faults
}

// rootName gives the variable an assignment reaches through, as x of x.y[z].
func rootName(e ast.Expr) string {
	for {
		switch v := e.(type) {
		case *ast.Ident:
			return v.Name
		case *ast.SelectorExpr:
			e = v.X
		case *ast.IndexExpr:
			e = v.X
		case *ast.StarExpr:
			e = v.X
		case *ast.ParenExpr:
			e = v.X
		default:
			return ""
		}
	}
}

// localNames collects the names a function declares: receiver, parameters,
// results and variables.
func localNames(fn *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, id := range n.Names {
				names[id.Name] = true
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					names[rootName(e)] = true
				}
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				names[id.Name] = true
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				for _, e := range []ast.Expr{n.Key, n.Value} {
					if e != nil {
						names[rootName(e)] = true
					}
				}
			}
		}
		return true
	})
	return names
}

package onereply_test

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

const (
	maxFileLines     = 400
	maxFunctionLines = 60
	maxScenarioLines = 80 // of a test: a scenario is told in order, and cutting it up hides the order
	maxMethods       = 6
)

// longer lists what may pass a limit, and why: "path" for a file,
// "path:Function" for a function, "path:Interface" for an interface.
var longer = map[string]string{}

// emptyNames say nothing about what is inside.
var emptyNames = []string{"util", "utils", "common", "shared", "base", "types", "helper", "helpers", "misc", "models"}

func checkNames(t *tree) (faults []fault) {
	for _, f := range t.files {
		stem := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.path), ".go"), "_test")
		if slices.Contains(emptyNames, stem) {
			faults = append(faults, f.fault(f.tree, "a file called %s says nothing; name its subject", stem))
		}
		name := strings.TrimSuffix(f.tree.Name.Name, "_test")
		if slices.Contains(emptyNames, name) {
			faults = append(faults, f.fault(f.tree, "a package called %s says nothing; name its subject", name))
		}
		if strings.Contains(name, "_") {
			faults = append(faults, f.fault(f.tree, "package names are one word; %s is not", name))
		}
	}
	return faults
}

func checkSizes(t *tree) (faults []fault) {
	for _, f := range t.files {
		if f.lines > maxFileLines && longer[f.path] == "" {
			faults = append(faults, f.fault(f.tree, "%d lines; a file is one subject of at most %d: would two names be clearer?", f.lines, maxFileLines))
		}
		for _, d := range f.tree.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil || longer[f.path+":"+fn.Name.Name] != "" {
				continue
			}
			most := maxFunctionLines
			if f.test() {
				most = maxScenarioLines
			}
			if n := functionLines(f, fn); n > most {
				faults = append(faults, f.fault(fn, "%s has %d lines; at most %d fit in one glance", fn.Name.Name, n, most))
			}
		}
	}
	return faults
}

// functionLines counts a function's lines. In tests a table of cases is data
// and does not count.
func functionLines(f *source, fn *ast.FuncDecl) int {
	span := func(n ast.Node) int { return f.fset.Position(n.End()).Line - f.line(n) }
	lines := span(fn) + 1
	if !f.test() {
		return lines
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok {
			if _, table := lit.Type.(*ast.ArrayType); table || isMap(lit.Type) {
				lines -= span(lit)
				return false
			}
		}
		return true
	})
	return lines
}

func isMap(e ast.Expr) bool {
	_, ok := e.(*ast.MapType)
	return ok
}

func checkInterfaces(t *tree) (faults []fault) {
	for _, f := range t.files {
		ast.Inspect(f.tree, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			iface, ok := spec.Type.(*ast.InterfaceType)
			if !ok || longer[f.path+":"+spec.Name.Name] != "" {
				return true
			}
			methods := 0
			for _, m := range iface.Methods.List {
				methods += len(m.Names)
			}
			if methods > maxMethods {
				faults = append(faults, f.fault(spec, "interface %s has %d methods; more than %d are two roles", spec.Name.Name, methods, maxMethods))
			}
			return true
		})
	}
	return faults
}

func checkDocs(t *tree) (faults []fault) {
	for dir, files := range t.packages() {
		var product []*source
		documented := false
		for _, f := range files {
			if strings.HasSuffix(f.path, "_test.go") {
				continue
			}
			product = append(product, f)
			documented = documented || f.tree.Doc != nil
			faults = append(faults, undocumented(f)...)
		}
		if len(product) > 0 && !documented {
			faults = append(faults, product[0].fault(product[0].tree, "package %s has no doc comment: tell its story and where to start reading", dir))
		}
	}
	return faults
}

func undocumented(f *source) (faults []fault) {
	for _, d := range f.tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
				faults = append(faults, f.fault(d, "exported %s has no comment", d.Name.Name))
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
						faults = append(faults, f.fault(s, "exported %s has no comment", s.Name.Name))
					}
				case *ast.ValueSpec:
					if s.Names[0].IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
						faults = append(faults, f.fault(s, "exported %s has no comment", s.Names[0].Name))
					}
				}
			}
		}
	}
	return faults
}

// exportedReceiver reports whether d is a function, or a method of an exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	e := d.Recv.List[0].Type
	for {
		switch v := e.(type) {
		case *ast.StarExpr:
			e = v.X
		case *ast.IndexExpr:
			e = v.X
		case *ast.IndexListExpr:
			e = v.X
		case *ast.Ident:
			return v.IsExported()
		default:
			return false
		}
	}
}

// clockReadings are the places in a store that may read the host's clock.
var clockReadings = map[string]string{
	"store/sqlite/connector.go": "how long to wait for a busy file; nothing that is stored depends on it",
	"store/sqlite/writer.go":    "how long to let other processes go first; nothing that is stored depends on it",
	"store/sqlite/group.go":     "how long to let other processes go first; nothing that is stored depends on it",
	"store/sqlite/clock.go":     "SQLite has only the host's clock: one reading, after the lock is held",
}

func checkCalls(t *tree) (faults []fault) {
	for _, f := range t.files {
		ast.Inspect(f.tree, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			if text := judgeCall(f, pkg.Name+"."+sel.Sel.Name); text != "" {
				faults = append(faults, f.fault(sel, "%s", text))
			}
			return true
		})
	}
	return faults
}

func judgeCall(f *source, name string) string {
	switch name {
	case "time.Now", "time.Since", "time.Until":
		if strings.HasPrefix(f.dir, "store") && !f.test() && clockReadings[f.path] == "" {
			return name + " in a store: the database's clock decides, read after the lock is held (P5)"
		}
	case "time.Sleep":
		if f.test() && !imports(f, "testing/synctest") {
			return "time.Sleep in a test: wait for the condition, or use testing/synctest"
		}
	case "context.Background", "context.TODO":
		if !f.test() && !tool(f.dir) {
			return name + " outside cmd and tests: a goroutine ends with its owner's context"
		}
	case "os.Getenv", "os.LookupEnv", "os.Environ", "os.Setenv":
		if f.dir != "internal/settings" && !f.test() && !strings.HasPrefix(f.dir, "scripts/") {
			return name + " outside internal/settings: one place reads the environment"
		}
	}
	return ""
}

func imports(f *source, name string) bool {
	return slices.ContainsFunc(f.tree.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == `"`+name+`"` })
}

// constantCalls make values that nobody changes afterwards.
var constantCalls = []string{
	"errors.New", "fmt.Errorf", "strings.Repeat", "regexp.MustCompile", "template.Must", "strings.NewReplacer",
	"netip.MustParsePrefix", "netip.MustParseAddr", "bluemonday.UGCPolicy", "goldmark.New",
	"set", // a lookup table of words
}

func checkState(t *tree) (faults []fault) {
	for _, f := range t.files {
		if f.test() {
			continue
		}
		for _, d := range f.tree.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.Name == "init" && d.Recv == nil {
					faults = append(faults, f.fault(d, "init functions run behind the reader's back; let cmd/onereply/wire.go do it"))
				}
			case *ast.GenDecl:
				if d.Tok == token.VAR {
					faults = append(faults, mutable(f, d)...)
				}
			}
		}
	}
	return append(faults, changedState(t)...)
}

func mutable(f *source, d *ast.GenDecl) (faults []fault) {
	for _, s := range d.Specs {
		v := s.(*ast.ValueSpec)
		if v.Names[0].Name == "_" || embedded(d.Doc) || embedded(v.Doc) {
			continue
		}
		for i, name := range v.Names {
			if i >= len(v.Values) || !constant(v.Values[i]) {
				faults = append(faults, f.fault(v, "package-level %s can change: keep state in a value that its owner passes on", name.Name))
			}
		}
	}
	return faults
}

func embedded(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed") })
}

func constant(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CompositeLit, *ast.BasicLit, *ast.FuncLit, *ast.Ident, *ast.SelectorExpr:
		return true
	case *ast.UnaryExpr:
		return constant(e.X)
	case *ast.CallExpr:
		switch fn := e.Fun.(type) {
		case *ast.Ident:
			return slices.Contains(constantCalls, fn.Name)
		case *ast.SelectorExpr:
			pkg, ok := fn.X.(*ast.Ident)
			return ok && slices.Contains(constantCalls, pkg.Name+"."+fn.Sel.Name)
		case *ast.ArrayType, *ast.ParenExpr:
			return true // a conversion
		}
	}
	return false
}

package sqlite

import (
	"database/sql/driver"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"regexp"
	"strings"
)

//go:embed sql/*.sql
var statementFiles embed.FS

// statement is one file of sql/: its text with each `:name` made a positional
// parameter, and the names in the order of those positions.
type statement struct {
	name   string
	text   string
	params []string
}

var (
	lineComment = regexp.MustCompile(`(?m)^\s*--.*\n?`)
	namedParam  = regexp.MustCompile(`:[a-z_]+`)
)

// loadStatements reads every embedded statement.
func loadStatements() (map[string]*statement, error) {
	files, err := fs.Glob(statementFiles, "sql/*.sql")
	if err != nil {
		return nil, fmt.Errorf("listing statements: %w", err)
	}
	all := make(map[string]*statement, len(files))
	for _, file := range files {
		raw, err := statementFiles.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading statement %s: %w", file, err)
		}
		st := &statement{name: strings.TrimSuffix(path.Base(file), ".sql")}
		text := strings.TrimSpace(lineComment.ReplaceAllString(string(raw), ""))
		st.text = namedParam.ReplaceAllStringFunc(text, func(p string) string {
			st.params = append(st.params, p[1:])
			return "?"
		})
		all[st.name] = st
	}
	return all, nil
}

// bind orders named arguments (name, value, name, value…) by position. Every
// parameter must be given and every argument used: anything else is a mistake
// in this package, found by its tests.
func (st *statement) bind(args []any) ([]driver.NamedValue, error) {
	bound := make([]driver.NamedValue, len(st.params))
	for i, name := range st.params {
		bound[i].Ordinal = i + 1
		found := false
		for j := 0; j+1 < len(args); j += 2 {
			if args[j] == name {
				v, err := driverValue(args[j+1])
				if err != nil {
					return nil, fmt.Errorf("statement %s: parameter %s: %w", st.name, name, err)
				}
				bound[i].Value, found = v, true
				break
			}
		}
		if !found {
			return nil, fmt.Errorf("statement %s: parameter %s is missing", st.name, name)
		}
	}
	return bound, nil
}

// driverValue narrows a value to what the driver takes.
func driverValue(v any) (driver.Value, error) {
	switch v := v.(type) {
	case nil, int64, string, []byte, bool:
		return v, nil
	case int:
		return int64(v), nil
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.String:
		return r.String(), nil
	default:
		return nil, fmt.Errorf("cannot bind a %T", v)
	}
}

// row is one result row; its values are the driver's own.
type row []driver.Value

func (r row) integer(i int) int64 {
	n, _ := r[i].(int64) // schemas are STRICT; NULL reads as 0
	return n
}

func (r row) count(i int) int { return int(r.integer(i)) }

func (r row) text(i int) string {
	switch v := r[i].(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

// bytes returns nil for NULL.
func (r row) bytes(i int) []byte {
	switch v := r[i].(type) {
	case string:
		return []byte(v)
	case []byte:
		return append([]byte{}, v...)
	}
	return nil
}

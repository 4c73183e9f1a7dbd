package postgres

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed sql/*.sql
var statementFiles embed.FS

// loadStatements reads every statement, with the schema that the store was
// opened with in place of the one the files are written with.
func loadStatements(schema string) (map[string]string, error) {
	files, err := fs.Glob(statementFiles, "sql/*.sql")
	if err != nil {
		return nil, fmt.Errorf("listing statements: %w", err)
	}
	text := make(map[string]string, len(files))
	for _, file := range files {
		raw, err := statementFiles.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading statement %s: %w", file, err)
		}
		text[strings.TrimSuffix(path.Base(file), ".sql")] = inSchema(string(raw), schema)
	}
	return text, nil
}

// inSchema puts the schema's name where the files write their own word for it.
func inSchema(text, schema string) string {
	return strings.NewReplacer("onereply.", schema+".", "EXISTS onereply", "EXISTS "+schema).Replace(text)
}

package postgres

// Statements are the texts of sql/ in a schema, for tests that prepare and
// explain them.
func Statements(schema string) (map[string]string, error) { return loadStatements(schema) }

// AlongIndexes are the settings that a purge runs with.
const AlongIndexes = alongIndexes

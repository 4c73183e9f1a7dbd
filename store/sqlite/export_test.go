package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// LimitPages lets the file grow to n pages and no further: a full disk.
func (s *Store) LimitPages(ctx context.Context, n int) error {
	_, err := s.writes.ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", n))
	return err
}

// Exec plants a state that no method would leave behind.
func (s *Store) Exec(ctx context.Context, text string, args ...any) error {
	_, err := s.writes.ExecContext(ctx, text, args...)
	return err
}

// Statements returns the text of every statement by name.
func Statements() (map[string]string, error) {
	all, err := loadStatements()
	texts := map[string]string{}
	for name, st := range all {
		texts[name] = st.text
	}
	return texts, err
}

// Prepare prepares a text against the schema.
func (s *Store) Prepare(ctx context.Context, text string) error {
	st, err := s.writes.PrepareContext(ctx, text)
	if err != nil {
		return err
	}
	return st.Close()
}

// Mutate replaces a part of a statement of this store, for good. The error says
// why it cannot: the part is not there, or what remains is no SQL. Where the
// part holds parameters that the replacement does not, its first ones go.
func (s *Store) Mutate(ctx context.Context, name, part, instead string) error {
	st := s.statements[name]
	if st == nil || !strings.Contains(st.text, part) {
		return fmt.Errorf("%s.sql holds no %q", name, part)
	}
	before, _, _ := strings.Cut(st.text, part)
	at := strings.Count(before, "?")
	changed := *st
	changed.text = strings.Replace(st.text, part, instead, 1)
	changed.params = append(append([]string{}, st.params[:at]...), st.params[at+strings.Count(part, "?")-strings.Count(instead, "?"):]...)
	if err := s.Prepare(ctx, changed.text); err != nil {
		return fmt.Errorf("%s.sql without %q: %w", name, part, err)
	}
	s.statements[name] = &changed
	return nil
}

// Plan returns the steps by which SQLite runs a text.
func (s *Store) Plan(ctx context.Context, text string) (steps []string, err error) {
	params := make([]any, strings.Count(text, "?"))
	rows, err := s.reads.QueryContext(ctx, "EXPLAIN QUERY PLAN "+text, params...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			return nil, err
		}
		steps = append(steps, detail)
	}
	return steps, rows.Err()
}

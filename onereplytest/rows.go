package onereplytest

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/onereply/onereply"
)

// Rows finds what a hook left: the id of the task for each row, or for each
// other effect, as often as there are. It reads what is committed.
type Rows func(ctx context.Context, db *sql.DB) ([]onereply.TaskID, error)

// Query finds rows by a query whose one column is the task's id, such as
//
//	onereplytest.Query(`SELECT task_id FROM answers`)
func Query(text string) Rows {
	return func(ctx context.Context, db *sql.DB) (ids []onereply.TaskID, err error) {
		rows, err := db.QueryContext(ctx, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		defer rows.Close()
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				return nil, fmt.Errorf("%s: %w", text, err)
			}
			ids = append(ids, onereply.TaskID(id))
		}
		return ids, rows.Err()
	}
}

type hookName string

const (
	createdHook hookName = "Created"
	endedHook   hookName = "Ended"
)

// story is what was seen of a task beside its rows.
type story struct {
	works int              // how often Work began
	runs  map[hookName]int // how often a hook ran for it, committed or not
}

func (w *World) note(id onereply.TaskID, f func(*story)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stories[id]
	if s == nil {
		s = &story{runs: map[hookName]int{}}
		w.stories[id] = s
	}
	f(s)
}

func (w *World) story(id onereply.TaskID) (told story) {
	w.note(id, func(s *story) {
		told = story{works: s.works, runs: map[hookName]int{createdHook: s.runs[createdHook], endedHook: s.runs[endedHook]}}
	})
	return told
}

// committed returns the ends, or the creations, whose hook was committed.
func (w *World) committed(ctx context.Context, hook hookName) (map[onereply.TaskID][]onereply.Status, error) {
	rows, err := w.DB().QueryContext(ctx, `SELECT task_id, status FROM onereplytest_hooks WHERE hook = ?`, string(hook))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[onereply.TaskID][]onereply.Status{}
	for rows.Next() {
		var id, status string
		if err := rows.Scan(&id, &status); err != nil {
			return nil, err
		}
		found[onereply.TaskID(id)] = append(found[onereply.TaskID(id)], onereply.Status(status))
	}
	return found, rows.Err()
}

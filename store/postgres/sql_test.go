package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/engine"
	"github.com/onereply/onereply/store/postgres"
)

// The same as examples/postgres, for a program on database/sql: its own *sql.Tx
// carries the task.
func TestATransactionOfDatabaseSQLCarriesTheTask(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", postgres.Options{})
	db := stdlib.OpenDBFromPool(s.pool)
	t.Cleanup(func() { s.must(db.Close()) })
	own, err := postgres.NewSQL(db, postgres.Options{Schema: s.schema})
	s.must(err)
	t.Cleanup(func() { s.must(own.Close()) })
	s.exec("CREATE TABLE " + s.schema + ".app (task text NOT NULL)")
	e, err := engine.New(engine.Options{Store: own, Kinds: []onereply.Kind{replies()}})
	s.must(err)
	for _, keep := range []bool{false, true} {
		tx, err := db.BeginTx(t.Context(), nil)
		s.must(err)
		res, err := e.SubmitTx(t.Context(), postgres.WrapSQL(tx), press("k"))
		if err != nil || !res.Created {
			t.Fatalf("%+v, %v", res, err)
		}
		_, err = tx.ExecContext(t.Context(), "INSERT INTO "+s.schema+".app VALUES ($1)", string(res.Task.ID))
		s.must(err)
		if keep {
			s.must(own.NotifyTx(t.Context(), postgres.WrapSQL(tx)))
			s.must(tx.Commit())
		} else {
			s.must(tx.Rollback())
		}
	}
	var n int
	s.scan(&n, "SELECT count(*) FROM "+s.schema+".app a JOIN "+s.schema+".tasks t ON t.id = a.task")
	var tasks int
	s.scan(&tasks, "SELECT count(*) FROM "+s.schema+".tasks")
	if n != 1 || tasks != 1 {
		t.Errorf("%d rows with a task of %d, want one of one", n, tasks)
	}
}

// Hooks that ask for the wrong kind of transaction are told at once.
func TestUnwrapOfAnothersTransactionPanics(t *testing.T) {
	t.Parallel()
	for name, unwrap := range map[string]func(){
		"pgx from database/sql": func() { postgres.Unwrap(postgres.WrapSQL(nil)) },
		"database/sql from pgx": func() { postgres.UnwrapSQL(postgres.Wrap(nil)) },
		"another store's":       func() { postgres.Unwrap(foreign{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			unwrap()
		})
	}
}

type foreign struct{}

func (foreign) TxDriver() string { return "foreign" }

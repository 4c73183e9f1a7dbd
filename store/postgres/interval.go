package postgres

import (
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// interval is a duration as PostgreSQL's interval, under pgx and database/sql.
type interval time.Duration

// ScanInterval implements pgtype.IntervalScanner. Months do not occur: every
// interval here was made of a duration or of the difference of two times.
func (d *interval) ScanInterval(v pgtype.Interval) error {
	*d = interval(time.Duration(v.Microseconds)*time.Microsecond + time.Duration(v.Days)*24*time.Hour)
	return nil
}

// IntervalValue implements pgtype.IntervalValuer.
func (d interval) IntervalValue() (pgtype.Interval, error) {
	return pgtype.Interval{Microseconds: time.Duration(d).Microseconds(), Valid: true}, nil
}

// Value implements driver.Valuer, for database/sql.
func (d interval) Value() (driver.Value, error) {
	return strconv.FormatInt(time.Duration(d).Microseconds(), 10) + " microseconds", nil
}

// Scan implements sql.Scanner, for database/sql, which hands the text form over.
func (d *interval) Scan(src any) error {
	if src == nil {
		*d = 0
		return nil
	}
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("interval from a %T", src)
	}
	total := time.Duration(0)
	fields := strings.Fields(text)
	for len(fields) > 1 && strings.HasPrefix(fields[1], "day") {
		days, err := strconv.Atoi(fields[0])
		if err != nil {
			return fmt.Errorf("interval %q: %w", text, err)
		}
		total += time.Duration(days) * 24 * time.Hour
		fields = fields[2:]
	}
	if len(fields) == 1 {
		clock, err := clockTime(fields[0])
		if err != nil {
			return fmt.Errorf("interval %q: %w", text, err)
		}
		total += clock
		fields = nil
	}
	if len(fields) > 0 {
		return fmt.Errorf("interval %q is not understood", text)
	}
	*d = interval(total)
	return nil
}

// clockTime reads [-]HH:MM:SS[.ffffff].
func clockTime(text string) (time.Duration, error) {
	sign := time.Duration(1)
	if strings.HasPrefix(text, "-") {
		sign, text = -1, text[1:]
	}
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return 0, fmt.Errorf("time %q", text)
	}
	d, err := time.ParseDuration(parts[0] + "h" + parts[1] + "m" + parts[2] + "s")
	return sign * d, err
}

package settings

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
)

func verbatim(to *string) func(string) error {
	return func(text string) error {
		*to = text
		return nil
	}
}

func number(to *int) func(string) error {
	return func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil {
			return errors.New("not a whole number")
		}
		*to = n
		return nil
	}
}

func duration(to *time.Duration) func(string) error {
	return func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil {
			return errors.New("not a duration such as 500ms, 30s, 15m or 168h")
		}
		*to = d
		return nil
	}
}

func boolean(to *bool) func(string) error {
	return func(text string) error {
		b, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("must be true or false")
		}
		*to = b
		return nil
	}
}

func level(to *slog.Level) func(string) error {
	return func(text string) error {
		switch text {
		case "debug", "info", "warn", "error":
			return to.UnmarshalText([]byte(text))
		}
		return errors.New("must be debug, info, warn or error")
	}
}

func size(to *int64) func(string) error {
	return func(text string) error {
		digits, unit := text, int64(1)
		for _, u := range []struct {
			suffix string
			bytes  int64
		}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}} {
			if rest, found := strings.CutSuffix(text, u.suffix); found {
				digits, unit = rest, u.bytes
			}
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n > math.MaxInt64/unit {
			return errors.New("not a size such as 4096, 64KiB or 1MiB")
		}
		*to = n * unit
		return nil
	}
}

// Database says where things are kept: in an SQLite file, or on a PostgreSQL
// server.
type Database struct {
	// File is the path of the SQLite file; empty with a server.
	File string
	// URL is the server's, as drivers take it, with the password it may hold.
	URL string
	// Schema holds the tables; empty: the default.
	Schema string
	// Listen says where to listen for other processes' commits: empty on a
	// connection of the pool, "off" nowhere, else the URL of a direct connection.
	Listen string
}

// ParseDatabase reads the text of --database.
func ParseDatabase(text string) (d Database, err error) {
	err = d.set(text)
	return d, err
}

// String gives the text the flag takes; of a server without its password.
func (d Database) String() string {
	if d.URL == "" {
		return "sqlite:" + d.File
	}
	return hidePassword(d.URL)
}

// hidePassword makes a database's text fit to be shown.
func hidePassword(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		scheme, _, _ := strings.Cut(text, "://")
		return scheme + "://…"
	}
	query := u.Query()
	for _, secret := range []string{"password", "sslpassword", "listen"} {
		if query.Get(secret) != "" && query.Get(secret) != "off" {
			query.Set(secret, "xxxxx")
		}
	}
	u.RawQuery = query.Encode()
	return u.Redacted()
}

func (d *Database) set(text string) error {
	scheme, file, found := strings.Cut(text, ":")
	switch {
	case !found:
		return fmt.Errorf("must begin with sqlite: as in sqlite:%s, or with postgres://", text)
	case scheme == "postgres" || scheme == "postgresql":
		return d.setServer(text)
	case scheme != "sqlite":
		return fmt.Errorf("%q is no database this build knows; use sqlite:FILE or postgres://…", scheme)
	case file == "":
		return errors.New("names no file; use sqlite:FILE")
	case strings.Contains(file, ":memory:") || strings.HasPrefix(file, "file:"):
		return errors.New("must name a file on disk, whose path is taken as it is; nothing else survives a restart")
	case strings.ContainsRune(file, 0):
		return errors.New("holds a NUL byte")
	}
	d.File = file
	return nil
}

// setServer reads the URL of a PostgreSQL server. Its members schema and listen
// are ours; everything else is the driver's.
func (d *Database) setServer(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return errors.New("cannot be read as a URL; percent-encode what is special in the password")
	}
	query := u.Query()
	if u.Host == "" && query.Get("host") == "" {
		return errors.New("names no host, as in postgres://user@host:5432/database")
	}
	d.Schema, d.Listen = query.Get("schema"), query.Get("listen")
	if d.Listen != "" && d.Listen != "off" && !strings.HasPrefix(d.Listen, "postgres") {
		return errors.New("listen must be off or the URL of a direct connection")
	}
	query.Del("schema")
	query.Del("listen")
	u.RawQuery = query.Encode()
	d.URL = u.String()
	return nil
}

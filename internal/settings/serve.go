package settings

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Roles are the parts of the service that a process plays.
type Roles struct {
	API      bool // answers HTTP and serves the page
	Dispatch bool // publishes to a broker; without one there is nothing to publish
	Work     bool // runs attempts
	Sweep    bool // removes what is past its retention
}

// Serve holds the settings of the service, one process. Durations are
// wall-clock; sizes are bytes.
type Serve struct {
	Listen   string // host:port; port 0 lets the system choose
	Database Database
	Migrate  bool   // bring the schema up to date at start
	Queue    string // "database"
	Model    Model

	DemoDelay          time.Duration // of the demo model, between two words
	OpenAIBackground   bool          // OpenAI's responses are made in the background and can be found again
	AnthropicMaxTokens int           // the longest answer asked of Anthropic

	ModelGate            bool // one gate before all calls of the process
	ModelConcurrency     int  // calls at once; 0: no limit
	ModelTokensPerMinute int  // 0: no limit

	Workers int // attempts at once in this process
	Lease   time.Duration
	Renew   time.Duration // at most a third of Lease
	Sweep   time.Duration

	MaxAttempts      int
	MaxCalls         int
	MaxElapsed       time.Duration
	BackoffBase      time.Duration
	BackoffMax       time.Duration
	CallTimeout      time.Duration
	OnUnknownOutcome string // "retry" or "stop"

	KeyRetention  time.Duration
	TaskRetention time.Duration // at least KeyRetention

	MaxMessage int64 // of one message's text
	Drain      time.Duration
	Roles      Roles

	LogLevel  slog.Level
	LogFormat string // "text" or "json"

	renewText string // as given; empty: derived from Lease
	secrets   secrets
}

// ParseServe reads the settings of the service. The error is [ErrHelp], a
// [*UsageError], or the [Faults] of the values; then the settings are unusable.
func ParseServe(args []string, lookup Lookup) (Serve, error) {
	var s Serve
	var faults Faults
	rest, unread, err := parse(s.flags(), args, lookup, &faults)
	if err != nil {
		return Serve{}, err
	}
	if len(rest) > 0 {
		return Serve{}, &UsageError{Err: fmt.Errorf("unexpected argument %q", rest[0])}
	}
	if derived := s.derive(); len(derived) > 0 {
		faults, unread = append(faults, derived...), append(unread, "renew")
	}
	if faults = append(faults, s.faults(unread)...); len(faults) > 0 {
		return Serve{}, faults
	}
	return s, nil
}

// Flags lists the flags of the service with their defaults, in the order in
// which help shows them.
func Flags() []Flag { return new(Serve).flags() }

// Help writes every flag of the service with its default and its variable.
func Help(w io.Writer) { help(w, Flags()) }

func (s *Serve) flags() []Flag {
	return slices.Concat(s.placeFlags(), s.modelFlags(), s.leaseFlags(), s.budgetFlags(), s.processFlags())
}

func (s *Serve) placeFlags() []Flag {
	return []Flag{
		{Name: "listen", Value: "HOST:PORT", Default: "127.0.0.1:8080",
			Usage: "Where the API and the page are served; port 0 lets the system choose one.", set: verbatim(&s.Listen)},
		{Name: "database", Value: "sqlite:FILE|postgres://…", Default: "sqlite:onereply.db",
			Usage: "Where tasks, messages and answers are kept: a file, or a PostgreSQL server for any number of processes.", show: hidePassword, set: s.Database.set},
		{Name: "migrate", Value: "true|false", Default: "true",
			Usage: "Bring the schema up to date at start; with false an outdated one stops the start.", set: boolean(&s.Migrate)},
		{Name: "queue", Value: "QUEUE", Default: "database",
			Usage: "How work reaches the workers; the database itself is the queue.", set: verbatim(&s.Queue)},
	}
}

func (s *Serve) leaseFlags() []Flag {
	return []Flag{
		{Name: "workers", Value: "N", Default: "32",
			Usage: "Attempts at once in this process.", set: number(&s.Workers)},
		{Name: "lease", Value: "DURATION", Default: "30s",
			Usage: "How long an assignment lasts unless it is renewed; a dead worker's task is taken over after it.", set: duration(&s.Lease)},
		{Name: "renew", Value: "DURATION", Derived: "a third of --lease",
			Usage: "How often running attempts renew their lease; at most a third of it.", set: verbatim(&s.renewText)},
		{Name: "sweep", Value: "DURATION", Default: "5s",
			Usage: "How often to look for what is past its retention.", set: duration(&s.Sweep)},
	}
}

func (s *Serve) budgetFlags() []Flag {
	return []Flag{
		{Name: "max-attempts", Value: "N", Default: "5",
			Usage: "Attempts a reply may use.", set: number(&s.MaxAttempts)},
		{Name: "max-calls", Value: "N", Default: "3",
			Usage: "Calls to the model a reply may use; each is counted before it is sent.", set: number(&s.MaxCalls)},
		{Name: "max-elapsed", Value: "DURATION", Default: "15m",
			Usage: "Time a reply may use from its submission or its last resume.", set: duration(&s.MaxElapsed)},
		{Name: "backoff-base", Value: "DURATION", Default: "1s",
			Usage: "The ceiling of the first wait before a retry; the ceiling doubles, the wait is drawn evenly below it.", set: duration(&s.BackoffBase)},
		{Name: "backoff-max", Value: "DURATION", Default: "1m",
			Usage: "The highest ceiling of a wait before a retry.", set: duration(&s.BackoffMax)},
		{Name: "call-timeout", Value: "DURATION", Default: "5m",
			Usage: "Time one call to the model may take.", set: duration(&s.CallTimeout)},
		{Name: "on-unknown-outcome", Value: "retry|stop", Default: "retry",
			Usage: "What follows a call that may have run although nobody knows: try again within the budget, or stop and say so.", set: verbatim(&s.OnUnknownOutcome)},
	}
}

func (s *Serve) processFlags() []Flag {
	return []Flag{
		{Name: "key-retention", Value: "DURATION", Default: "168h",
			Usage: "How long an idempotency key is remembered, and at least until its task has ended.", set: duration(&s.KeyRetention)},
		{Name: "task-retention", Value: "DURATION", Default: "720h",
			Usage: "How long an ended task is kept; at least --key-retention.", set: duration(&s.TaskRetention)},
		{Name: "max-message", Value: "SIZE", Default: "64KiB",
			Usage: "The longest text of one message, in bytes, KiB or MiB.", set: size(&s.MaxMessage)},
		{Name: "drain", Value: "DURATION", Default: "20s",
			Usage: "Time running attempts get to end after SIGTERM or Ctrl-C; then they are put back. A second signal ends at once.", set: duration(&s.Drain)},
		{Name: "roles", Value: "LIST", Default: "api,dispatch,work,sweep",
			Usage: "Which parts this process plays. Dispatch has nothing to do while the database is the queue.", set: s.Roles.set},
		{Name: "log-level", Value: "LEVEL", Default: "info",
			Usage: "The least severe log line written: debug, info, warn or error.", set: level(&s.LogLevel)},
		{Name: "log-format", Value: "text|json", Default: "text",
			Usage: "How log lines on standard error are written.", set: verbatim(&s.LogFormat)},
	}
}

// derive fills in the values whose default depends on another.
func (s *Serve) derive() (faults Faults) {
	s.Model.resolve(s.secrets)
	if s.renewText == "" {
		s.Renew = s.Lease / 3
		return nil
	}
	if err := duration(&s.Renew)(s.renewText); err != nil {
		faults.addf("--renew %q: %v", s.renewText, err)
	}
	return faults
}

func (r *Roles) set(text string) error {
	*r = Roles{}
	for name := range strings.SplitSeq(text, ",") {
		role := map[string]*bool{"api": &r.API, "dispatch": &r.Dispatch, "work": &r.Work, "sweep": &r.Sweep}[strings.TrimSpace(name)]
		if role == nil {
			return fmt.Errorf("%q is no role; name some of api, dispatch, work, sweep", name)
		}
		*role = true
	}
	return nil
}

// String lists the roles as the flag takes them.
func (r Roles) String() string {
	var names []string
	for _, role := range []struct {
		on   bool
		name string
	}{{r.API, "api"}, {r.Dispatch, "dispatch"}, {r.Work, "work"}, {r.Sweep, "sweep"}} {
		if role.on {
			names = append(names, role.name)
		}
	}
	return strings.Join(names, ",")
}

package settings

import (
	"net"
	"strconv"
	"time"
)

const (
	shortestLease  = 100 * time.Millisecond // below it a busy disk alone would lose leases
	longestMessage = 16 << 20
	mostWorkers    = 10_000
)

// Validate reports everything that makes no sense, each fault by the name of
// its flag, as [Faults]; nil when there is none.
func (s Serve) Validate() error {
	if faults := s.faults(nil); len(faults) > 0 {
		return faults
	}
	return nil
}

// judge collects faults, and leaves out those that only follow from another:
// what is compared with a wrong value, or derived from one, may be right.
type judge struct {
	Faults

	wrong map[string]bool // names of flags
}

// good reports whether nothing was found wrong with any of the flags.
func (j *judge) good(names ...string) bool {
	for _, name := range names {
		if j.wrong[name] {
			return false
		}
	}
	return true
}

// check notes a fault of a flag unless it holds, or unless the flag's value
// could not be read, which has been said already.
func (j *judge) check(name string, holds bool, format string, args ...any) {
	if holds || j.wrong[name] {
		return
	}
	j.wrong[name] = true
	j.addf("--"+name+" "+format, args...)
}

// faults judges the values of all flags but those that could not be read.
func (s Serve) faults(unread []string) Faults {
	j := &judge{wrong: map[string]bool{}}
	for _, name := range unread {
		j.wrong[name] = true
	}
	fault := checkAddress(s.Listen)
	j.check("listen", fault == "", "%q: %s", s.Listen, fault)
	j.check("queue", s.Queue == "database", "%q: brokers are not supported yet; use database", s.Queue)
	s.modelFaults(j)
	s.leaseFaults(j)
	s.budgetFaults(j)
	s.processFaults(j)
	return j.Faults
}

func (s Serve) leaseFaults(j *judge) {
	j.check("workers", s.Workers >= 1 && s.Workers <= mostWorkers,
		"%d: must be from 1 to %d; a process without workers leaves work out of --roles", s.Workers, mostWorkers)
	j.check("lease", s.Lease >= shortestLease, "%v: must be at least %v", s.Lease, shortestLease)
	if j.good("lease") {
		j.check("renew", s.Renew > 0 && s.Renew <= s.Lease/3, "%v: must be above zero and at most a third of --lease (%v)", s.Renew, s.Lease/3)
	} else if s.renewText != "" {
		j.check("renew", s.Renew > 0, "%v: must be above zero and at most a third of --lease", s.Renew)
	}
	j.check("sweep", s.Sweep >= time.Millisecond, "%v: must be at least 1ms", s.Sweep)
}

func (s Serve) budgetFaults(j *judge) {
	j.check("max-attempts", s.MaxAttempts >= 1, "%d: must be at least 1", s.MaxAttempts)
	j.check("max-calls", s.MaxCalls >= 1, "%d: must be at least 1", s.MaxCalls)
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"max-elapsed", s.MaxElapsed}, {"backoff-base", s.BackoffBase}, {"backoff-max", s.BackoffMax}, {"call-timeout", s.CallTimeout},
	} {
		j.check(d.name, d.value >= time.Millisecond, "%v: must be at least 1ms", d.value)
	}
	if j.good("backoff-base") {
		j.check("backoff-max", s.BackoffMax >= s.BackoffBase, "%v: must be at least --backoff-base (%v)", s.BackoffMax, s.BackoffBase)
	}
	j.check("on-unknown-outcome", s.OnUnknownOutcome == "retry" || s.OnUnknownOutcome == "stop", "%q: must be retry or stop", s.OnUnknownOutcome)
}

func (s Serve) processFaults(j *judge) {
	j.check("key-retention", s.KeyRetention >= time.Second, "%v: must be at least 1s", s.KeyRetention)
	if j.good("key-retention") {
		j.check("task-retention", s.TaskRetention >= s.KeyRetention, "%v: must be at least --key-retention (%v)", s.TaskRetention, s.KeyRetention)
	} else {
		j.check("task-retention", s.TaskRetention >= time.Second, "%v: must be at least --key-retention", s.TaskRetention)
	}
	j.check("max-message", s.MaxMessage >= 1 && s.MaxMessage <= longestMessage, "%d: must be from 1 to %d bytes", s.MaxMessage, longestMessage)
	j.check("drain", s.Drain >= 0, "%v: must not be negative", s.Drain)
	j.check("log-format", s.LogFormat == "text" || s.LogFormat == "json", "%q: must be text or json", s.LogFormat)
}

// checkAddress says what is wrong with a listen address, or nothing. While no
// API key exists anyone who reaches the port may read and write everything, so
// the address must not leave the machine.
func checkAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "must be HOST:PORT"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n > 65535 {
		return "must end in a port from 0 to 65535"
	}
	if !loopback(host) {
		return "is reachable from other machines, which needs API keys, and this version has none; use a loopback address such as 127.0.0.1:" + port
	}
	return ""
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

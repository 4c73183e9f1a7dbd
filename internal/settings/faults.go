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
	if faults := s.faults(); len(faults) > 0 {
		return faults
	}
	return nil
}

func (s Serve) faults() Faults {
	var f Faults
	if err := checkAddress(s.Listen); err != "" {
		f.addf("--listen %q: %s", s.Listen, err)
	}
	if s.Queue != "database" {
		f.addf("--queue %q: brokers are not supported yet; use database", s.Queue)
	}
	if s.Model.DemoDelay < 0 {
		f.addf("--demo-delay %v: must not be negative", s.Model.DemoDelay)
	}
	s.leaseFaults(&f)
	s.budgetFaults(&f)
	s.processFaults(&f)
	return f
}

func (s Serve) leaseFaults(f *Faults) {
	if s.Workers < 1 || s.Workers > mostWorkers {
		f.addf("--workers %d: must be from 1 to %d; a process without workers leaves work out of --roles", s.Workers, mostWorkers)
	}
	if s.Lease < shortestLease {
		f.addf("--lease %v: must be at least %v", s.Lease, shortestLease)
	}
	if s.Renew <= 0 || s.Renew > s.Lease/3 {
		f.addf("--renew %v: must be above zero and at most a third of --lease (%v)", s.Renew, s.Lease/3)
	}
	if s.Sweep < time.Millisecond {
		f.addf("--sweep %v: must be at least 1ms", s.Sweep)
	}
}

func (s Serve) budgetFaults(f *Faults) {
	if s.MaxAttempts < 1 {
		f.addf("--max-attempts %d: must be at least 1", s.MaxAttempts)
	}
	if s.MaxCalls < 1 {
		f.addf("--max-calls %d: must be at least 1", s.MaxCalls)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"max-elapsed", s.MaxElapsed}, {"backoff-base", s.BackoffBase}, {"call-timeout", s.CallTimeout},
	} {
		if d.value < time.Millisecond {
			f.addf("--%s %v: must be at least 1ms", d.name, d.value)
		}
	}
	if s.BackoffMax < s.BackoffBase {
		f.addf("--backoff-max %v: must be at least --backoff-base (%v)", s.BackoffMax, s.BackoffBase)
	}
	if s.OnUnknownOutcome != "retry" && s.OnUnknownOutcome != "stop" {
		f.addf("--on-unknown-outcome %q: must be retry or stop", s.OnUnknownOutcome)
	}
}

func (s Serve) processFaults(f *Faults) {
	if s.KeyRetention < time.Second {
		f.addf("--key-retention %v: must be at least 1s", s.KeyRetention)
	}
	if s.TaskRetention < s.KeyRetention {
		f.addf("--task-retention %v: must be at least --key-retention (%v)", s.TaskRetention, s.KeyRetention)
	}
	if s.MaxMessage < 1 || s.MaxMessage > longestMessage {
		f.addf("--max-message %d: must be from 1 to %d bytes", s.MaxMessage, longestMessage)
	}
	if s.Drain < 0 {
		f.addf("--drain %v: must not be negative", s.Drain)
	}
	if s.LogFormat != "text" && s.LogFormat != "json" {
		f.addf("--log-format %q: must be text or json", s.LogFormat)
	}
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

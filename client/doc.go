// Package client talks to the service's HTTP API from Go.
//
// A press of Send is one [Client.Send] with one key: every retry inside it uses
// the same key, so a lost answer never becomes a second task. [Client.Follow]
// then hands over the reply's text as it is written and returns the task once
// it has ended; a lost connection is taken up again where it broke off. Start
// reading at client.go.
//
// Requests are retried after network errors, 429 and 5xx, with exponential
// backoff and full jitter, no sooner than the server's Retry-After, and no
// longer than [Options.Patience]. Every request here may be repeated: those
// that create something carry a key.
package client

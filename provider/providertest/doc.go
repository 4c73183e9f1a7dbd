// Package providertest is the conformance suite of package provider: what every
// adapter must make of an answer, and of each way in which a call can end,
// proved on the wire against a scripted provider. Start reading at rows.go.
package providertest

// Package simulator is a scripted model provider: an http.Handler that speaks
// the wires of OpenAI's chat completions and Responses, in the background too,
// and of Anthropic's Messages, streamed, and misbehaves on request. It records
// every request it gets, so a test can tell how many really arrived.
//
// What it does with a request is a [Plan]. A program gives one by a function
// ([Options].Script); anybody else writes markers into the prompt, which
// [ParsePlan] lists: "[[delay 2s]] [[1: status 500]] [[2: say ok]] why?", or
// into a file of rules ([ParseScript]). Only the last user message is read, so
// that an earlier turn's markers, which a conversation sends along for ever, do
// nothing.
//
// Start reading at simulator.go; plan.go has the faults, markers.go their
// spelling, play.go what they do to the connection, chat.go, responses.go and
// messages.go the wires, operations.go what is made in the background. Another
// wire is another implementation of the interface in play.go and another path.
package simulator

// Package provider holds what a feature asks of a language model, and the HTTP
// client that keeps the count honest under any SDK ([Client]).
package provider

import (
	"context"

	"github.com/onereply/onereply"
)

// Role of a message sent to a model.
type Role string

// The roles. A request's messages alternate between user and assistant,
// starting and ending with user, after at most one system message.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one turn.
type Message struct {
	Role Role
	Text string
}

// Request is what a model is asked.
type Request struct {
	Messages []Message
}

// Answer is a whole answer; nothing partial is ever one.
type Answer struct {
	Text         string
	Model        string // as the provider names what answered
	FinishReason string // "stop", or "length" when it was cut by a limit of tokens
	Truncated    bool
	Usage        onereply.Usage
}

// Model answers requests. Its methods are safe for concurrent use.
type Model interface {
	// Name is the label shown beside replies before an answer names its own.
	Name() string

	// Start sends the request as the one send of call and streams the text to
	// emit as it arrives; an error of emit ends the call. It returns an answer
	// only when the provider's end mark was seen. Errors are classified
	// ([onereply.CallError]) where the body says more than the wire did, and are
	// otherwise left to [onereply.Classify].
	Start(ctx context.Context, call onereply.Call, r Request, emit func(delta string) error) (Answer, error)
}

// Recoverer is a Model whose calls can be found again by the operation id that
// Start checkpointed, as its provider documents (P10).
type Recoverer interface {
	Model
	// Recover follows the operation to its end without starting work, streaming
	// its text from the beginning. An outcome that is still not known is an error
	// of class unknown; a provider that says the work failed gives the class of
	// that failure.
	Recover(ctx context.Context, operation string, emit func(delta string) error) (Answer, error)
	// Cancel asks the provider to stop the operation. Best effort (P16).
	Cancel(ctx context.Context, operation string) error
}

// Admitter is a Model that knows when a call would come too soon or be one too
// many. Ask it before a call is counted: what it refuses is not sent and costs
// nothing of the budget of calls.
type Admitter interface {
	Model
	// Admit waits for leave to make one call, at most for some seconds, and
	// returns what gives the leave back; call it once, when the call has ended or
	// was not made. The error is that of ctx, or of class refused_temporary with
	// the time to wait.
	Admit(ctx context.Context, r Request) (leave func(), err error)
}

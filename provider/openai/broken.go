package openai

import (
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/onereply/onereply"
	"github.com/onereply/onereply/provider"
)

var (
	errNoEnd    = errors.New("the stream ended without an end mark")
	errNoStream = errors.New("the response is not a stream of events")
)

// streamFault is an error event of a stream. A response made in the background
// may go on beside it.
type streamFault struct{ *onereply.CallError }

// Unwrap gives the classified error.
func (f *streamFault) Unwrap() error { return f.CallError }

// broken says why a stream of so many events ended before its end mark, or
// nothing where whole says that the mark was seen and no error came beside it.
// What it does not classify is for onereply.Classify, which knows what was seen
// on the wire.
func broken(err error, body *tap, events int, begun, whole bool) error {
	var event *ssestream.StreamError
	switch {
	case body.status == 0 || body.status >= 300:
		if err == nil {
			err = fmt.Errorf("status %d", body.status)
		}
		return err
	case errors.As(err, &event):
		e, ok := provider.ParseError(event.Event.Data)
		if !ok {
			return onereply.Useless(onereply.CodeBadProviderResponse, err)
		}
		return &streamFault{onereply.ClassifyCode(e.Code, e.Type, begun, err)}
	case errors.Is(body.err, errEventTooLong), err != nil && body.err == nil:
		// The bytes came, and made no sense.
		return onereply.Useless(onereply.CodeBadProviderResponse, err)
	case whole:
		return nil
	case err != nil:
		return fmt.Errorf("reading the stream: %w", err)
	case events > 0 || !body.page() && !body.json():
		return onereply.UnknownOutcome(onereply.CodeProviderUnavailable, errNoEnd)
	}
	if e, ok := provider.ParseError(body.start); ok {
		said := fmt.Errorf("%w but an error %q %q: %s", errNoStream, e.Code, e.Type, e.Message)
		if c := onereply.ClassifyCode(e.Code, e.Type, true, said); c.Class == onereply.ClassRefusedPermanent {
			return c
		}
		return onereply.Useless(onereply.CodeBadProviderResponse, said)
	}
	return onereply.Useless(onereply.CodeBadProviderResponse, errNoStream)
}

package provider

import (
	"errors"
	"fmt"

	"github.com/onereply/onereply"
)

var (
	errNoEnd    = errors.New("the stream ended without an end mark")
	errNoStream = errors.New("the response is not a stream of events")
)

// StreamFault is an error event of a stream, classified. What is made in the
// background may go on beside it.
type StreamFault struct{ *onereply.CallError }

// Unwrap gives the classified error.
func (f *StreamFault) Unwrap() error { return f.CallError }

// Fault classifies the data of an error event. Begun says that output had begun.
func Fault(data []byte, begun bool) error {
	e, ok := ParseError(data)
	if !ok {
		return onereply.Useless(onereply.CodeBadProviderResponse, errors.New("an error event that names no error"))
	}
	return &StreamFault{onereply.ClassifyCode(e.Code, e.Type, begun, fmt.Errorf("error event %q %q: %s", e.Code, e.Type, e.Message))}
}

// Broken says why a stream of so many events ended before its end mark, err being
// what the SDK says of it, or nothing where whole says that the mark was seen and
// no error came. What it does not classify is for onereply.Classify, which knows
// what was seen on the wire.
func (t *Tap) Broken(err error, events int, whole bool) error {
	var classified *onereply.CallError
	switch {
	case t.status == 0 || t.status >= 300:
		if err == nil {
			err = fmt.Errorf("status %d", t.status)
		}
		return err
	case errors.As(err, &classified):
		return err
	case errors.Is(t.err, errEventTooLong), err != nil && t.err == nil:
		// The bytes came, and made no sense.
		return onereply.Useless(onereply.CodeBadProviderResponse, err)
	case whole:
		return nil
	case err != nil:
		return fmt.Errorf("reading the stream: %w", err)
	case events > 0 || !t.page() && !t.json():
		return onereply.UnknownOutcome(onereply.CodeProviderUnavailable, errNoEnd)
	}
	if e, ok := ParseError(t.start); ok {
		said := fmt.Errorf("%w but an error %q %q: %s", errNoStream, e.Code, e.Type, e.Message)
		if c := onereply.ClassifyCode(e.Code, e.Type, true, said); c.Class == onereply.ClassRefusedPermanent {
			return c
		}
		return onereply.Useless(onereply.CodeBadProviderResponse, said)
	}
	return onereply.Useless(onereply.CodeBadProviderResponse, errNoStream)
}

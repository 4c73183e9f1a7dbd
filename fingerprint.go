package onereply

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sort"
)

// fingerprintVersion is stored in the fingerprint's first byte, so that a later
// canonical form can be told from this one.
const fingerprintVersion = 1

// Fingerprint is what a key is bound to (P1): a version byte and the SHA-256 of
// the kind and the bound bytes, each with its length before it so that no two
// pairs run together.
func Fingerprint(kind string, bound []byte) []byte {
	h := sha256.New()
	var n [8]byte
	for _, part := range [][]byte{[]byte(kind), bound} {
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	return append([]byte{fingerprintVersion}, h.Sum(nil)...)
}

// Canonical returns JSON with members sorted, white space gone and members left
// at their zero value ("", 0, false, null, [] and {}) dropped, so that a new
// optional field of an input does not turn replays into refusals. Numbers keep
// their text; array order is meaning and stays, and so do zeros inside arrays.
func Canonical(raw []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("canonical json: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("canonical json: more than one value")
	}
	var b bytes.Buffer
	if err := writeCanonical(&b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func writeCanonical(b *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case map[string]any:
		return writeObject(b, v)
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeCanonical(b, e); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	default:
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("canonical json: %w", err)
		}
		b.Write(text)
		return nil
	}
}

func writeObject(b *bytes.Buffer, m map[string]any) error {
	names := make([]string, 0, len(m))
	for name, v := range m {
		if !zero(v) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	b.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writeCanonical(b, name); err != nil {
			return err
		}
		b.WriteByte(':')
		if err := writeCanonical(b, m[name]); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// zero reports whether a member would be left out: itself zero, or an object
// with only such members.
func zero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case json.Number:
		f, err := v.Float64()
		return err == nil && f == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, e := range v {
			if !zero(e) {
				return false
			}
		}
		return true
	}
	return false
}

package onereply

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"io"
	"sync"
	"time"
)

// TaskID identifies a task. It is a UUIDv7 in its 36-character text form, so
// ids sort by creation.
type TaskID string

// AttemptID identifies one attempt. It is random per claim: it traces the
// attempt and, beside the version, guards its writes (P5).
type AttemptID string

// IDs mints UUIDv7 identifiers that rise strictly within one process, whatever
// the host clock does. It is safe for concurrent use.
type IDs struct {
	now  func() time.Time
	rand io.Reader

	mu   sync.Mutex
	last uint64 // 48 bits of milliseconds, 12 bits of sequence
}

// NewIDs returns a mint that reads the host's clock and the system's
// randomness. The clock only orders ids; no promise depends on it.
func NewIDs() *IDs { return NewIDsFrom(time.Now, rand.Reader) }

// NewIDsFrom is NewIDs with the clock and the randomness given, for
// deterministic tests. The reader must not fail.
func NewIDsFrom(now func() time.Time, random io.Reader) *IDs {
	return &IDs{now: now, rand: random}
}

// New returns the next id.
func (g *IDs) New() string {
	var b [16]byte
	if _, err := io.ReadFull(g.rand, b[6:]); err != nil {
		// crypto/rand never fails; a reader given by a test that does is a bug there.
		panic("onereply: reading randomness for an id: " + err.Error())
	}
	stamp := g.stamp(binary.BigEndian.Uint16(b[6:8]))
	binary.BigEndian.PutUint64(b[:8], (stamp>>12)<<16|0x7000|stamp&0xfff)
	b[8] = b[8]&0x3f | 0x80
	return format(b)
}

// stamp returns 48 bits of milliseconds and 12 bits of sequence, above every
// earlier one. A fresh millisecond starts at a random sequence in the lower
// half, so that ids of two processes interleave and there is room to count up.
func (g *IDs) stamp(seed uint16) uint64 {
	stamp := uint64(g.now().UnixMilli())<<12 | uint64(seed&0x7ff)
	g.mu.Lock()
	defer g.mu.Unlock()
	if stamp <= g.last {
		stamp = g.last + 1
	}
	g.last = stamp
	return stamp
}

// NewAttempt returns a fresh random attempt id.
func (g *IDs) NewAttempt() AttemptID { return AttemptID(g.New()) }

func format(b [16]byte) string {
	var s [36]byte
	hex.Encode(s[0:8], b[0:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:36], b[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}

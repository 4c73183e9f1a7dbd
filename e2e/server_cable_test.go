//go:build unix

package e2e

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// commitFate is what becomes of a COMMIT on its way to the server.
type commitFate int

const (
	delivered  commitFate = iota
	answerLost            // the server commits, and the connection ends before it can say so
	commitLost            // the connection ends before the server has got it
)

// cable stands between processes and their server. It reads what the processes
// say, in the server's protocol, to end connections at exact moments; and it
// keeps its address while the server moves.
type cable struct {
	t        *testing.T
	listener net.Listener
	wg       sync.WaitGroup

	mu       sync.Mutex
	upstream string
	conns    map[net.Conn]bool
	commits  int
	fateOf   func(n int) commitFate // of the n-th COMMIT, from 1; nil: all are delivered
	ended    map[commitFate]int     // connections ended by fate
	deaf     bool                   // connections end when they want to listen
	unheard  int                    // how many did
}

func startCable(t *testing.T, upstream string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &cable{t: t, upstream: upstream, listener: l, conns: map[net.Conn]bool{}, ended: map[commitFate]int{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *cable) address() string { return p.listener.Addr().String() }

// lead has later connections go to another address.
func (p *cable) lead(upstream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstream = upstream
}

// decide says what becomes of COMMITs from now on, counted anew.
func (p *cable) decide(fateOf func(n int) commitFate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commits, p.fateOf, p.ended = 0, fateOf, map[commitFate]int{}
}

func (p *cable) endings(f commitFate) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended[f]
}

// deafen ends every connection that wants to listen, or lets them be.
func (p *cable) deafen(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = on
}

func (p *cable) unheardOf() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unheard
}

func (p *cable) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		p.close(c)
	}
}

func (p *cable) close(c net.Conn) {
	if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		p.t.Errorf("cable: %v", err)
	}
}

func (p *cable) accept() {
	for {
		down, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.mu.Lock()
		to := p.upstream
		p.mu.Unlock()
		up, err := net.Dial("tcp", to)
		if err != nil {
			p.close(down) // the server is away
			continue
		}
		p.mu.Lock()
		p.conns[down], p.conns[up] = true, true
		p.mu.Unlock()
		mute := make(chan struct{}) // closed when the server's next answer is to be lost
		p.wg.Go(func() { p.requests(up, down, mute) })
		p.wg.Go(func() { p.answers(down, up, mute) })
	}
}

// requests carries what a process says, message by message.
func (p *cable) requests(up, down net.Conn, mute chan struct{}) {
	defer p.close(down)
	defer p.close(up)
	muted := false
	for first := true; ; first = false {
		message, err := frame(down, first)
		if err != nil {
			return // that side is gone, or we closed it
		}
		switch p.judge(message, first) {
		case commitLost:
			return
		case answerLost:
			if !muted {
				muted = true
				close(mute)
			}
		}
		if _, err := up.Write(message); err != nil {
			return
		}
	}
}

// judge reads one message and says what becomes of it.
func (p *cable) judge(message []byte, first bool) commitFate {
	if first || message[0] != 'Q' {
		return delivered
	}
	text := strings.ToLower(strings.TrimRight(string(message[5:]), "\x00"))
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case strings.HasPrefix(text, "listen ") && p.deaf:
		p.unheard++
		return commitLost
	case text == "commit" && p.fateOf != nil:
		p.commits++
		f := p.fateOf(p.commits)
		p.ended[f]++
		return f
	}
	return delivered
}

// frame reads one message: a type, which the first one of a connection has not,
// and a length that counts itself.
func frame(from io.Reader, first bool) ([]byte, error) {
	head := make([]byte, 5)
	if first {
		head = head[:4]
	}
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	n := -4
	for i, b := range head[len(head)-4:] {
		n += int(b) << (8 * (3 - i))
	}
	if n < 0 || n > 64<<20 {
		return nil, errors.New("no message of this protocol")
	}
	message := append(head, make([]byte, n)...)
	_, err := io.ReadFull(from, message[len(head):])
	return message, err
}

// answers carries what the server says, until it is to be lost: then it waits for
// the server's answer, so that what was asked is done, and drops it.
func (p *cable) answers(down, up net.Conn, mute chan struct{}) {
	defer p.close(down)
	defer p.close(up)
	buffer := make([]byte, 32<<10)
	for {
		n, err := up.Read(buffer)
		select {
		case <-mute:
			return
		default:
		}
		if n > 0 {
			if _, err := down.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

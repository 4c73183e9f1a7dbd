//go:build unix

package e2e

import (
	"errors"
	"net"
	"sync"
	"testing"
)

// proxy stands between a client and a server and can lose answers: the request
// arrives, the server does its part, and nothing of its answer gets back.
type proxy struct {
	t        *testing.T
	upstream string
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	losing bool
	lost   int
	conns  map[net.Conn]bool
}

func startProxy(t *testing.T, upstream string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, upstream: upstream, listener: l, conns: map[net.Conn]bool{}}
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

func (p *proxy) url() string { return "http://" + p.listener.Addr().String() }

// loseAnswers switches the loss of answers on or off.
func (p *proxy) loseAnswers(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.losing = on
}

// losses counts the answers lost.
func (p *proxy) losses() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// cut ends every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		p.closeConn(c)
	}
}

func (p *proxy) closeConn(c net.Conn) {
	if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		p.t.Errorf("proxy: %v", err)
	}
}

func (p *proxy) keep(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
}

func (p *proxy) accept() {
	for {
		down, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		up, err := net.Dial("tcp", p.upstream)
		if err != nil {
			p.closeConn(down)
			continue
		}
		p.keep(down, up)
		p.wg.Go(func() { p.carry(up, down, false) })
		p.wg.Go(func() { p.carry(down, up, true) })
	}
}

// carry copies one direction and ends both when either ends.
func (p *proxy) carry(to, from net.Conn, answers bool) {
	defer p.closeConn(to)
	defer p.closeConn(from)
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && answers && p.lose() {
			return
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return // that side is gone
			}
		}
		if err != nil {
			return // ended, reset or closed: the other side learns it by the close
		}
	}
}

func (p *proxy) lose() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.losing {
		p.lost++
	}
	return p.losing
}

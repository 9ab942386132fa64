package route

import (
	"io"
	"net"
)

// Stream is one end of a connection as a link sees it. Read and the rest may be used at the same time.
type Stream interface {
	io.ReadWriteCloser
	// CloseWrite ends what is written: the other end reads io.EOF, and may go on writing.
	CloseWrite() error
	// Reset breaks the connection off: the other end's reads and writes fail.
	Reset() error
}

// TCP makes a Stream of a TCP connection.
func TCP(conn *net.TCPConn) Stream { return tcp{conn} }

type tcp struct{ *net.TCPConn }

func (t tcp) Reset() error {
	// With no time to linger, closing sends RST instead of FIN.
	t.SetLinger(0)
	return t.Close()
}

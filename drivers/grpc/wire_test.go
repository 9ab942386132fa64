package grpc

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/planrun/planrun/drivers"
)

// readOnly is a connection that gives its bytes in pieces.
type readOnly struct {
	net.Conn
	data  []byte
	piece int
}

func (r *readOnly) Read(p []byte) (int, error) {
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.data[:min(max(r.piece, 1), len(r.data))])
	r.data = r.data[n:]
	return n, nil
}

func drain(w *wire) {
	for buf := make([]byte, 4096); ; {
		if _, err := w.Read(buf); err != nil {
			return
		}
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// What the wire sees does not depend on how the bytes come.
func TestWire(t *testing.T) {
	var b bytes.Buffer
	f := http2.NewFramer(&b, nil)
	f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20}, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 7})
	f.WriteSettingsAck()
	f.WriteData(1, false, bytes.Repeat([]byte{4}, 5000)) // looks like SETTINGS inside
	f.WriteRSTStream(1, http2.ErrCodeCancel)
	f.WritePing(false, [8]byte{})
	f.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 9})
	f.WriteRSTStream(3, http2.ErrCodeRefusedStream)
	f.WriteGoAway(math.MaxInt32, http2.ErrCodeNo, nil)
	f.WriteGoAway(5, http2.ErrCodeEnhanceYourCalm, []byte("too_many_pings"))
	for _, piece := range []int{1, 2, 5, 9, 10, 100, 4096} {
		w := newWire(&readOnly{data: b.Bytes(), piece: piece})
		var limits []uint32
		w.changed = func() { limits = append(limits, w.streams.Load()) }
		drain(w)
		if got := fmt.Sprint(limits); got != "[7 9 9]" {
			t.Errorf("pieces of %d: limits %s", piece, got)
		}
		if n := w.resets.Load(); n != 2 {
			t.Errorf("pieces of %d: %d resets", piece, n)
		}
		if !isClosed(w.begun) || !isClosed(w.gone) {
			t.Errorf("pieces of %d: begun %v, gone %v", piece, isClosed(w.begun), isClosed(w.gone))
		}
		if err := w.loss("calling"); drivers.KindOf(err) != drivers.Reset || !strings.Contains(err.Error(), `calling: the server ended the connection: GOAWAY ENHANCE_YOUR_CALM "too_many_pings"; ping less often`) {
			t.Errorf("pieces of %d: %v", piece, err)
		}
	}
}

func TestWireBeginning(t *testing.T) {
	for _, test := range []struct {
		data   string
		secure bool
		kind   drivers.Failure
		text   string
	}{
		{"", false, drivers.Reset, "the server closed the connection at once; if it expects TLS, write plaintext: false"},
		{"", true, drivers.Reset, "the server closed the connection"},
		{"\x15\x03\x01\x00\x02\x02\x46", false, drivers.Protocol, "the server expects TLS; write plaintext: false"},
		{"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", false, drivers.Protocol, `the server answered "HTTP/1.1 400 Bad Request": gRPC needs HTTP/2`},
		{"SSH-2.0-OpenSSH_9.6\r\n", false, drivers.Protocol, `the server does not speak HTTP/2: its answer begins with "SSH-2.0-OpenSSH_9.6`},
		{"220 ", false, drivers.Protocol, `begins with "220 "`},
	} {
		for _, piece := range []int{1, 4096} {
			w := newWire(&readOnly{data: []byte(test.data), piece: piece})
			drain(w)
			err := w.beginning(test.secure)
			// Of bytes that come one by one only the first are waited for.
			told := strings.Contains(err.Error(), test.text) || piece == 1 && len(test.data) > frameHead
			if isClosed(w.begun) || !isClosed(w.gone) || drivers.KindOf(err) != test.kind || !told {
				t.Errorf("%q in pieces of %d: %v: %v", test.data, piece, drivers.KindOf(err), err)
			}
		}
	}
}

// Whatever a peer sends, the wire hands it through, ends, and does not keep much of it.
func FuzzWire(f *testing.F) {
	var b bytes.Buffer
	framer := http2.NewFramer(&b, nil)
	framer.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 7})
	framer.WriteGoAway(1, http2.ErrCodeNo, []byte("enough"))
	f.Add(b.Bytes(), 3)
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\n"), 100)
	f.Add([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}, 1)
	f.Add([]byte{0xff, 0xff, 0xff, 4, 0, 0, 0, 0, 0, 1, 2, 3}, 2)
	f.Fuzz(func(t *testing.T, data []byte, piece int) {
		w := newWire(&readOnly{data: data, piece: piece})
		var got []byte
		for buf := make([]byte, 1000); ; {
			n, err := w.Read(buf)
			got = append(got, buf[:n]...)
			if err != nil {
				break
			}
		}
		if !bytes.Equal(got, data) {
			t.Error("the bytes were changed")
		}
		if !isClosed(w.gone) || cap(w.keep) > 4*maxKept || len(w.goaway) > 8*maxKept || len(w.alien) > 100 {
			t.Error("the wire has not ended, or keeps too much")
		}
		if drivers.KindOf(w.loss("x")) == drivers.OK || drivers.KindOf(w.beginning(true)) == drivers.OK {
			t.Error("the end has no reason")
		}
	})
}

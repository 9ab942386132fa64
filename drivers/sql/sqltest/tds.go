package sqltest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"
)

// TDS is a stand-in for SQL Server: it speaks enough of MS-TDS 7.4 for a client to log in, send batches and remote
// procedure calls of sp_executesql, and read rows and errors. What it answers is up to Answer.
type TDS struct {
	Server
	// Answer makes the answer to a request; nil stands for an answer without rows. It is called by one goroutine per
	// connection.
	Answer func(TDSRequest) TDSAnswer

	listener net.Listener
	mu       sync.Mutex
	conns    map[net.Conn]bool
	requests []TDSRequest
	logins   int
	wg       sync.WaitGroup
}

// TDSRequest is a statement as the server received it.
type TDSRequest struct {
	// Procedure says that it came as a call of sp_executesql, with Args; otherwise it was a batch.
	Procedure bool
	Text      string
	Args      []any // int64, float64, bool, string, TDSTime or nil
	// Connection counts the connections from 0.
	Connection int
}

// TDSTime is an argument that is a date, a datetime2 or a datetimeoffset.
type TDSTime struct{ Type, Text string }

// TDSAnswer is what the server sends back: result sets, then perhaps an error.
type TDSAnswer struct {
	Sets  []TDSSet
	Error *TDSError
	// Affected is the number of rows in the last DONE token, if there are no sets.
	Affected uint64
	// Hang sends nothing at all, and Close ends the connection after the answer.
	Hang, Close bool
}

// TDSSet is one result set. A value is an int64, a string, or nil.
type TDSSet struct {
	Columns []string
	Rows    [][]any
}

// TDSError is an ERROR token.
type TDSError struct {
	Number  uint32
	Class   byte
	Message string
}

var le = binary.LittleEndian

// StartTDS starts the stand-in on 127.0.0.1 and stops it when the test ends.
func StartTDS(t testing.TB, answer func(TDSRequest) TDSAnswer) *TDS {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &TDS{
		Server:   Server{Addr: l.Addr().String(), User: "tester", Password: "s3cret-ms", Database: "app"},
		Answer:   answer,
		listener: l,
		conns:    map[net.Conn]bool{},
	}
	s.wg.Go(s.accept)
	t.Cleanup(func() {
		l.Close()
		s.mu.Lock()
		for c := range s.conns {
			c.Close()
		}
		s.mu.Unlock()
		s.wg.Wait()
	})
	return s
}

// URL is the stand-in's DSN, password included.
func (s *TDS) URL() string { return s.URLAt(s.Addr) }

// URLAt is URL through another address, such as that of a relay.
func (s *TDS) URLAt(addr string) string {
	return fmt.Sprintf("sqlserver://%s:%s@%s?database=%s&encrypt=disable", s.User, s.Password, addr, s.Database)
}

// Requests are the statements received so far.
func (s *TDS) Requests() []TDSRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Logins is how many clients have logged in so far.
func (s *TDS) Logins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}

func (s *TDS) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[c] = true
		s.mu.Unlock()
		s.wg.Go(func() {
			s.serve(c)
			c.Close()
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		})
	}
}

// The types of messages (MS-TDS 2.2.3.1.1).
const (
	tdsBatch    = 0x01
	tdsRPC      = 0x03
	tdsLogin    = 0x10
	tdsPrelogin = 0x12
)

func (s *TDS) serve(c net.Conn) {
	number := 0
	for {
		kind, body, err := readMessage(c)
		if err != nil {
			return
		}
		switch kind {
		case tdsPrelogin:
			writeMessage(c, prelogin())
		case tdsLogin:
			user, password, err := credentials(body)
			if err != nil || user != s.User || password != s.Password {
				refusal := &TDSError{18456, 14, fmt.Sprintf("Login failed for user '%s'.", user)}
				writeMessage(c, append(refusal.token(), done(tokenDone, doneError, 0)...))
				return
			}
			s.mu.Lock()
			number = s.logins
			s.logins++
			s.mu.Unlock()
			writeMessage(c, append(loginAck(), done(tokenDone, 0, 0)...))
		case tdsBatch, tdsRPC:
			request, err := parseRequest(kind, body)
			if err != nil {
				broken := &TDSError{8009, 16, err.Error()}
				writeMessage(c, append(broken.token(), done(tokenDone, doneError, 0)...))
				return
			}
			request.Connection = number
			s.mu.Lock()
			s.requests = append(s.requests, request)
			s.mu.Unlock()
			var answer TDSAnswer
			if s.Answer != nil {
				answer = s.Answer(request)
			}
			if answer.Hang {
				continue
			}
			if writeMessage(c, answer.tokens(request.Procedure)) != nil || answer.Close {
				return
			}
		default:
			writeMessage(c, done(tokenDone, 0, 0))
		}
	}
}

func readMessage(r io.Reader) (kind byte, body []byte, err error) {
	for {
		var h [8]byte
		if _, err := io.ReadFull(r, h[:]); err != nil {
			return 0, nil, err
		}
		n := int(binary.BigEndian.Uint16(h[2:])) - len(h)
		if n < 0 {
			return 0, nil, errors.New("a packet is shorter than its header")
		}
		from := len(body)
		body = append(body, make([]byte, n)...)
		if _, err := io.ReadFull(r, body[from:]); err != nil {
			return 0, nil, err
		}
		if h[1]&1 != 0 { // the end of the message
			return h[0], body, nil
		}
	}
}

// writeMessage sends a tabular result in packets of 4096 bytes.
func writeMessage(w io.Writer, body []byte) error {
	const room = 4096 - 8
	for id := byte(1); ; id++ {
		n := min(len(body), room)
		packet := []byte{4, 0, 0, 0, 0, 1, id, 0}
		if n == len(body) {
			packet[1] = 1
		}
		binary.BigEndian.PutUint16(packet[2:], uint16(n+8))
		if _, err := w.Write(append(packet, body[:n]...)); err != nil {
			return err
		}
		if body = body[n:]; len(body) == 0 {
			return nil
		}
	}
}

// prelogin says version 16.0.4001 and that there is no encryption (MS-TDS 2.2.6.5).
func prelogin() []byte {
	options := []struct {
		id    byte
		value []byte
	}{{0, []byte{16, 0, 0x0f, 0xa1, 0, 0}}, {1, []byte{2}}, {2, []byte{0}}, {3, []byte{0, 0, 0, 0}}, {4, []byte{0}}}
	var head, data []byte
	start := len(options)*5 + 1
	for _, o := range options {
		head = append(head, o.id)
		head = binary.BigEndian.AppendUint16(head, uint16(start+len(data)))
		head = binary.BigEndian.AppendUint16(head, uint16(len(o.value)))
		data = append(data, o.value...)
	}
	return append(append(head, 0xff), data...)
}

// credentials reads LOGIN7 (MS-TDS 2.2.6.4).
func credentials(b []byte) (user, password string, err error) {
	field := func(at int) ([]byte, error) {
		if len(b) < at+4 {
			return nil, io.ErrUnexpectedEOF
		}
		from, n := int(le.Uint16(b[at:])), 2*int(le.Uint16(b[at+2:]))
		if len(b) < from+n {
			return nil, io.ErrUnexpectedEOF
		}
		return slices.Clone(b[from : from+n]), nil
	}
	u, err := field(40)
	if err != nil {
		return "", "", err
	}
	p, err := field(44)
	if err != nil {
		return "", "", err
	}
	for i, c := range p { // obfuscated: nibbles swapped, then XOR 0xA5
		c ^= 0xa5
		p[i] = c<<4 | c>>4
	}
	return fromUCS2(u), fromUCS2(p), nil
}

// parseRequest reads a batch or an RPC of sp_executesql (MS-TDS 2.2.6.7, 2.2.6.6).
func parseRequest(kind byte, b []byte) (TDSRequest, error) {
	if len(b) < 4 || int(le.Uint32(b)) > len(b) {
		return TDSRequest{}, errors.New("the headers are cut")
	}
	b = b[le.Uint32(b):]
	if kind == tdsBatch {
		return TDSRequest{Text: fromUCS2(b)}, nil
	}
	if len(b) < 6 || le.Uint16(b) != 0xffff || le.Uint16(b[2:]) != 10 {
		return TDSRequest{}, errors.New("this is no call of sp_executesql")
	}
	p := &parser{b: b[6:]} // the number of the procedure, and flags
	var values []any
	for len(p.b) > 0 && p.err == nil {
		p.take(2 * int(p.byte())) // name
		p.take(1)                 // flags
		values = append(values, p.value())
	}
	if p.err != nil || len(values) == 0 {
		return TDSRequest{}, fmt.Errorf("the parameters can't be read: %v", p.err)
	}
	text, ok := values[0].(string)
	if !ok {
		return TDSRequest{}, errors.New("the statement is no text")
	}
	r := TDSRequest{Procedure: true, Text: text}
	if len(values) > 2 {
		r.Args = values[2:] // after the declarations
	}
	return r, nil
}

// parser reads the parameters of an RPC. After the first error it returns zeroes.
type parser struct {
	b   []byte
	err error
}

func (p *parser) take(n int) []byte {
	if p.err == nil && (n < 0 || len(p.b) < n) {
		p.err = io.ErrUnexpectedEOF
	}
	if p.err != nil {
		return make([]byte, max(0, min(n, 8)))
	}
	b := p.b[:n]
	p.b = p.b[n:]
	return b
}

func (p *parser) byte() byte { return p.take(1)[0] }

// time reads a date: days since the year 1, and before it, in units of 100 ns, the time of day; in UTC, if an offset in
// minutes comes after it.
func (p *parser) time(kind byte) any {
	if kind != 0x28 {
		if scale := p.byte(); scale != 7 {
			p.err = fmt.Errorf("a time of scale %d", scale)
		}
	}
	b := p.take(int(p.byte()))
	if want := map[byte]int{0x28: 3, 0x2a: 8, 0x2b: 10}[kind]; len(b) == 0 {
		return nil
	} else if len(b) != want {
		p.err = fmt.Errorf("a time of %d bytes", len(b))
		return nil
	}
	number := func(b []byte) (n int64) {
		for i, c := range b {
			n |= int64(c) << (8 * i)
		}
		return n
	}
	at := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	switch kind {
	case 0x28:
		return TDSTime{"date", at.AddDate(0, 0, int(number(b))).Format(time.DateOnly)}
	case 0x2a:
		at = at.AddDate(0, 0, int(number(b[5:8]))).Add(time.Duration(number(b[:5])) * 100)
		return TDSTime{"datetime2", at.Format("2006-01-02T15:04:05.9999999")}
	}
	at = at.AddDate(0, 0, int(number(b[5:8]))).Add(time.Duration(number(b[:5])) * 100)
	offset := int(int16(le.Uint16(b[8:])))
	return TDSTime{"datetimeoffset", at.In(time.FixedZone("", 60*offset)).Format(time.RFC3339Nano)}
}

// value reads a type and a value of it (MS-TDS 2.2.5.4 and 2.2.5.5).
func (p *parser) value() any {
	switch kind := p.byte(); kind {
	case 0x1f: // NULLTYPE
		return nil
	case 0x26, 0x6d, 0x68: // INTN, FLTN, BITN
		p.byte()
		b := p.take(int(p.byte()))
		switch {
		case len(b) == 0:
			return nil
		case kind == 0x68:
			return b[0] != 0
		case kind == 0x6d && len(b) == 8:
			return math.Float64frombits(le.Uint64(b))
		case kind == 0x26 && len(b) == 8:
			return int64(le.Uint64(b))
		}
		p.err = fmt.Errorf("a number of %d bytes", len(b))
		return nil
	case 0x28, 0x2a, 0x2b: // DATEN, DATETIME2N, DATETIMEOFFSETN
		return p.time(kind)
	case 0xe7: // NVARCHAR
		limit := le.Uint16(p.take(2))
		p.take(5) // collation
		if limit != 0xffff {
			n := le.Uint16(p.take(2))
			if n == 0xffff {
				return nil
			}
			return fromUCS2(p.take(int(n)))
		}
		if total := le.Uint64(p.take(8)); total == math.MaxUint64 {
			return nil
		}
		var text []byte
		for {
			n := le.Uint32(p.take(4))
			if n == 0 || p.err != nil {
				return fromUCS2(text)
			}
			text = append(text, p.take(int(n))...)
		}
	default:
		p.err = fmt.Errorf("type %#x", kind)
		return nil
	}
}

func loginAck() []byte {
	name := ucs2("stand-in")
	ack := append([]byte{1, 0x74, 0, 0, 4, byte(len(name) / 2)}, name...)
	ack = append(ack, 16, 0, 0, 0)
	return append(le.AppendUint16([]byte{0xad}, uint16(len(ack))), ack...)
}

// Tokens and bits of the DONE family (MS-TDS 2.2.7.6 to 2.2.7.8).
const (
	tokenDone       = 0xfd
	tokenDoneProc   = 0xfe
	tokenDoneInProc = 0xff
	doneMore        = 0x01
	doneError       = 0x02
	doneCount       = 0x10
)

func done(token byte, status uint16, rows uint64) []byte {
	b := le.AppendUint16([]byte{token}, status)
	b = le.AppendUint16(b, 0xc1) // SELECT
	return le.AppendUint64(b, rows)
}

func (a TDSAnswer) tokens(procedure bool) []byte {
	var b []byte
	each := byte(tokenDone)
	if procedure {
		each = tokenDoneInProc
	}
	for i, set := range a.Sets {
		b = append(b, set.tokens()...)
		status := uint16(doneCount)
		if procedure || a.Error != nil || i < len(a.Sets)-1 {
			status |= doneMore
		}
		b = append(b, done(each, status, uint64(len(set.Rows)))...)
	}
	if len(a.Sets) == 0 && a.Error == nil {
		status := uint16(doneCount)
		if procedure {
			status |= doneMore
		}
		b = append(b, done(each, status, a.Affected)...)
	}
	last := uint16(0)
	if a.Error != nil {
		b = append(b, a.Error.token()...)
		last = doneError
	}
	switch {
	case procedure:
		b = append(b, 0x79, 0, 0, 0, 0) // RETURNSTATUS
		b = append(b, done(tokenDoneProc, last, 0)...)
	case a.Error != nil:
		b = append(b, done(tokenDone, last, 0)...)
	}
	return b
}

// tokens makes COLMETADATA and ROW (MS-TDS 2.2.7.4, 2.2.7.19). A column is BIGINT if its first value is a number,
// else NVARCHAR(4000).
func (s TDSSet) tokens() []byte {
	b := le.AppendUint16([]byte{0x81}, uint16(len(s.Columns)))
	numeric := make([]bool, len(s.Columns))
	for i, name := range s.Columns {
		if len(s.Rows) > 0 {
			_, numeric[i] = s.Rows[0][i].(int64)
		}
		b = append(b, 0, 0, 0, 0, 1, 0) // user type; nullable
		if numeric[i] {
			b = append(b, 0x26, 8)
		} else {
			b = append(b, 0xe7, 0x40, 0x1f, 9, 4, 0xd0, 0, 0x34)
		}
		b = append(b, byte(len(ucs2(name))/2))
		b = append(b, ucs2(name)...)
	}
	for _, row := range s.Rows {
		b = append(b, 0xd1)
		for i, v := range row {
			switch v := v.(type) {
			case int64:
				b = le.AppendUint64(append(b, 8), uint64(v))
			case string:
				t := ucs2(v)
				b = append(le.AppendUint16(b, uint16(len(t))), t...)
			case nil:
				if numeric[i] {
					b = append(b, 0)
				} else {
					b = append(b, 0xff, 0xff)
				}
			}
		}
	}
	return b
}

// token makes an ERROR token (MS-TDS 2.2.7.10).
func (e *TDSError) token() []byte {
	message, server := ucs2(e.Message), ucs2("stand-in")
	b := le.AppendUint32(nil, e.Number)
	b = append(b, 1, e.Class)
	b = append(le.AppendUint16(b, uint16(len(message)/2)), message...)
	b = append(append(b, byte(len(server)/2)), server...)
	b = append(b, 0) // procedure
	b = le.AppendUint32(b, 1)
	return append(le.AppendUint16([]byte{0xaa}, uint16(len(b))), b...)
}

func ucs2(s string) []byte {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = le.AppendUint16(b, u)
	}
	return b
}

func fromUCS2(b []byte) string {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = le.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}

// Transactions answers BEGIN TRANSACTION and what ends it, and counts the open ones of all connections; other requests
// go to next.
func Transactions(next func(TDSRequest) TDSAnswer) (answer func(TDSRequest) TDSAnswer, open func() int) {
	var mu sync.Mutex
	inside := map[int]bool{}
	answer = func(r TDSRequest) TDSAnswer {
		mu.Lock()
		defer mu.Unlock()
		switch upper := strings.ToUpper(r.Text); {
		case strings.HasPrefix(upper, "BEGIN TRAN"):
			inside[r.Connection] = true
		case strings.Contains(upper, "ROLLBACK"), strings.HasPrefix(upper, "COMMIT"):
			delete(inside, r.Connection)
		default:
			return next(r)
		}
		return TDSAnswer{}
	}
	return answer, func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(inside)
	}
}

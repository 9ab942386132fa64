package download

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// serve starts a server that sends as many bytes as the query's size says, over HTTP/1.1 and HTTP/2 without TLS.
func serve(t testing.TB, handler http.HandlerFunc) (addr string, requests *atomic.Int64) {
	requests = new(atomic.Int64)
	if handler == nil {
		handler = func(w http.ResponseWriter, r *http.Request) {
			size, _ := strconv.ParseInt(r.FormValue("size"), 10, 64)
			if r.FormValue("chunked") == "" {
				w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
			}
			io.CopyBuffer(struct{ io.Writer }{w}, io.LimitReader(zeros{}, size), make([]byte, 256<<10))
		}
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		handler(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), requests
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestConformance(t *testing.T) {
	for _, version := range []string{"1.1", "2"} {
		t.Run(version, func(t *testing.T) {
			drivertest.Run(t, drivertest.Suite{
				Driver: New(),
				Serve: func(t testing.TB) drivertest.Server {
					addr, requests := serve(t, nil)
					return drivertest.Server{Addr: addr, Requests: func() int { return int(requests.Load()) }}
				},
				Fields: func(addr string) drivertest.Fields {
					return drivertest.Fields{"url": "http://" + addr + "/?size=100", "version": version}
				},
				Shared: version == "2",
				Allocs: 100, // the server's are among them
			})
		})
	}
}

// get makes one download with a fresh session.
func get(t *testing.T, fields drivertest.Fields, timeout time.Duration, reads ...string) drivertest.Result {
	t.Helper()
	b := drivertest.NewBench(t, New(), fields, drivers.Pool{Users: 1}, reads...)
	return b.Do(t.Context(), b.Open(), timeout)
}

func TestLarge(t *testing.T) {
	const size = 64 << 20
	addr, _ := serve(t, nil)
	for _, version := range []string{"1.1", "2"} {
		for _, query := range []string{"", "&chunked=1"} {
			t.Run(version+query, func(t *testing.T) {
				b := drivertest.NewBench(t, New(), drivertest.Fields{"url": fmt.Sprintf("http://%s/?size=%d%s", addr, size, query), "version": version}, drivers.Pool{Users: 1}, "sha256")
				session := b.Open()
				for range 2 {
					r := b.Must(session)
					if r.BytesIn != size {
						t.Errorf("%d bytes came, want %d", r.BytesIn, size)
					}
					if n, ok := r.Answer.Number("bytes"); !ok || n != size {
						t.Errorf("bytes is %v, %v", n, ok)
					}
					h := sha256.New()
					io.CopyN(h, zeros{}, size)
					if sum, err := r.Answer.Value("sha256"); err != nil || sum != hex.EncodeToString(h.Sum(nil)) {
						t.Errorf("sha256 is %v, %v", sum, err)
					}
				}
			})
		}
	}
}

// Bytes are counted while they arrive, and memory does not follow the size.
func TestReceivedWhileRunning(t *testing.T) {
	half := make(chan struct{})
	addr, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "2000")
		w.Write(make([]byte, 1000))
		w.(http.Flusher).Flush()
		<-half
		w.Write(make([]byte, 1000))
	})
	for _, version := range []string{"1.1", "2"} {
		b := drivertest.NewBench(t, New(), drivertest.Fields{"url": "http://" + addr, "version": version}, drivers.Pool{Users: 1})
		session := b.Open()
		var received atomic.Int64
		in := drivers.Input{Deadline: time.Now().Add(time.Minute), Received: &received}
		var out drivers.Outcome
		out.Reset()
		done := make(chan error, 1)
		go func() { done <- session.Do(t.Context(), b.Call, &in, &out) }()
		for received.Load() < 1000 {
			time.Sleep(time.Millisecond)
		}
		if n := received.Load(); n != 1000 {
			t.Errorf("HTTP/%s: %d bytes were received half-way, want 1000", version, n)
		}
		half <- struct{}{}
		if err := <-done; err != nil || received.Load() != 2000 {
			t.Errorf("HTTP/%s: %v, %d bytes", version, err, received.Load())
		}
	}
}

// answers starts a peer that answers each request on a connection with text and closes.
func answers(t *testing.T, text string, more func(net.Conn)) *drivertest.Peer {
	return drivertest.NewPeer(t, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return
		}
		io.WriteString(c, text)
		if more != nil {
			more(c)
		}
	})
}

func TestIncomplete(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		kind         drivers.Failure
		bytes        int64
		text         string
	}{
		{"truncated", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat("x", 600), drivers.Reset, 600, "600 of 1000 bytes"},
		{"no last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n258\r\n" + strings.Repeat("x", 600) + "\r\n", drivers.Reset, 600, "600 bytes"},
		{"within a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n259\r\n" + strings.Repeat("x", 600), drivers.Reset, 600, "600 bytes"},
		{"huge promise, nothing sent", "HTTP/1.1 200 OK\r\nContent-Length: 9000000000000000000\r\n\r\n", drivers.Reset, 0, "0 of 9000000000000000000 bytes"},
		{"impossible promise", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n", drivers.Protocol, 0, ""},
		{"malformed chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", drivers.Protocol, 0, "chunk"},
		{"chunk of exabytes", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n", drivers.Protocol, 0, "chunk"},
		{"longer than its chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxyz\r\n0\r\n\r\n", drivers.Protocol, 2, "longer"},
		{"cut within the head", "HTTP/1.1 200 OK\r\nContent-Le", drivers.Reset, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := get(t, drivertest.Fields{"url": "http://" + answers(t, c.answer, nil).Addr()}, time.Minute)
			if kind := drivers.KindOf(r.Err); kind != c.kind || !strings.Contains(fmt.Sprint(r.Err), c.text) {
				t.Errorf("got %v (%v), want %v with %q", kind, r.Err, c.kind, c.text)
			}
			if r.BytesIn != c.bytes {
				t.Errorf("%d bytes came, want %d", r.BytesIn, c.bytes)
			}
		})
	}
}

// A body whose end is the end of the connection is complete.
func TestUntilClose(t *testing.T) {
	r := get(t, drivertest.Fields{"url": "http://" + answers(t, "HTTP/1.0 200 OK\r\n\r\nhello", nil).Addr()}, time.Minute)
	if r.Err != nil || !r.Success || r.BytesIn != 5 {
		t.Errorf("%v, success %v, %d bytes", r.Err, r.Success, r.BytesIn)
	}
}

func TestIncompleteStream(t *testing.T) {
	addr, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.Write(make([]byte, 600))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	r := get(t, drivertest.Fields{"url": "http://" + addr, "version": "2"}, time.Minute)
	if drivers.KindOf(r.Err) != drivers.Reset || !strings.Contains(r.Err.Error(), "600 of 1000 bytes") || r.BytesIn != 600 {
		t.Errorf("got %v (%v) after %d bytes", drivers.KindOf(r.Err), r.Err, r.BytesIn)
	}
}

func TestLimit(t *testing.T) {
	addr, requests := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	for _, version := range []string{"1.1", "2"} {
		t.Run(version, func(t *testing.T) {
			requests.Store(0)
			b := drivertest.NewBench(t, New(), drivertest.Fields{"url": "http://" + addr, "version": version, "max_bytes": 1_000_000}, drivers.Pool{Users: 1})
			session := b.Open()
			for i := range 3 {
				r := b.Must(session)
				if r.BytesIn != 1_000_000 {
					t.Errorf("%d bytes came, want a million", r.BytesIn)
				}
				// Over HTTP/1.1 the rest ends with the connection, over HTTP/2 with the stream.
				if r.Opened != (i == 0 || version == "1.1") {
					t.Errorf("call %d: opened is %v", i, r.Opened)
				}
				if limited, err := r.Answer.Value("limited"); limited != true || err != nil {
					t.Errorf("limited is %v, %v", limited, err)
				}
			}
			if n := requests.Load(); n != 3 {
				t.Errorf("the server counted %d, want 3", n)
			}
		})
	}
	t.Run("not reached", func(t *testing.T) {
		addr, _ := serve(t, nil)
		r := get(t, drivertest.Fields{"url": "http://" + addr + "/?size=1000", "max_bytes": 1001}, time.Minute)
		if limited, _ := r.Answer.Value("limited"); r.Err != nil || limited != false || r.BytesIn != 1000 {
			t.Errorf("%v, limited %v, %d bytes", r.Err, limited, r.BytesIn)
		}
	})
}

// A transfer that keeps moving outlives the stall; one that stops does not, and says how far it came.
func TestStall(t *testing.T) {
	const pieces, pause, stall = 16, 100 * time.Millisecond, 1500 * time.Millisecond
	addr, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(pieces))
		for i := range pieces {
			if i == pieces/2 && r.FormValue("stop") != "" {
				<-r.Context().Done()
				return
			}
			w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			time.Sleep(pause)
		}
	})
	for _, version := range []string{"1.1", "2"} {
		t.Run(version+" moving", func(t *testing.T) {
			t.Parallel()
			r := get(t, drivertest.Fields{"url": "http://" + addr, "version": version, "stall": stall}, time.Minute)
			if r.Err != nil || r.BytesIn != pieces {
				t.Errorf("%v, %d bytes", r.Err, r.BytesIn)
			}
			if r.Service <= stall {
				t.Errorf("%v is no test of a stall of %v", r.Service, stall)
			}
		})
		t.Run(version+" stopped", func(t *testing.T) {
			t.Parallel()
			r := get(t, drivertest.Fields{"url": "http://" + addr + "/?stop=1", "version": version, "stall": stall}, time.Minute)
			if drivers.KindOf(r.Err) != drivers.Timeout || !strings.Contains(r.Err.Error(), "8 of 16 bytes, then nothing for 1.5s") {
				t.Errorf("%v (%v)", drivers.KindOf(r.Err), r.Err)
			}
		})
		t.Run(version+" deadline", func(t *testing.T) {
			t.Parallel()
			r := get(t, drivertest.Fields{"url": "http://" + addr + "/?stop=1", "version": version, "stall": time.Minute}, stall)
			if drivers.KindOf(r.Err) != drivers.Timeout || strings.Contains(r.Err.Error(), "nothing") {
				t.Errorf("%v (%v)", drivers.KindOf(r.Err), r.Err)
			}
		})
	}
}

func TestChecksum(t *testing.T) {
	addr, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "test") })
	const sum = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	if r := get(t, drivertest.Fields{"url": "http://" + addr, "sha256": strings.ToUpper(sum)}, time.Minute); r.Err != nil || !r.Success {
		t.Errorf("right checksum: %v", r.Err)
	}
	wrong := strings.Replace(sum, "9", "8", 1)
	if r := get(t, drivertest.Fields{"url": "http://" + addr, "sha256": wrong}, time.Minute); drivers.KindOf(r.Err) != drivers.Expectation || !strings.Contains(r.Err.Error(), sum) {
		t.Errorf("wrong checksum: %v", r.Err)
	}
}

func TestSuccess(t *testing.T) {
	addr, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.URL.Path[1:])
		w.WriteHeader(code)
	})
	for code, want := range map[int]bool{200: true, 206: true, 204: false, 304: false, 404: false, 500: false} {
		r := get(t, drivertest.Fields{"url": fmt.Sprintf("http://%s/%d", addr, code)}, time.Minute)
		if r.Err != nil || r.Success != want || r.Status != code {
			t.Errorf("%d: %v, success %v, status %d", code, r.Err, r.Success, r.Status)
		}
	}
}

// A call says what it requests.
func TestCallDescribesItself(t *testing.T) {
	call := drivertest.Prepare(t, New(), drivertest.Fields{"url": "http://me:hunter2@a.test/file?size=64MiB", "parts": 4})
	if got := fmt.Sprint(call); got != "GET /file?size=64MiB" {
		t.Errorf("got %s", got)
	}
}

// A download that fails says how the body of the answer begins, in parts or not, and one that succeeds says nothing of it.
func TestExcerpt(t *testing.T) {
	addr, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.URL.Path[1:])
		w.WriteHeader(code)
		io.WriteString(w, `{"error":"no such file"}`)
	})
	for _, c := range []struct {
		path  string
		parts int
		want  string
	}{
		{"200", 1, "status was 200"},
		{"404", 1, `status was 404: {"error":"no such file"}`},
		{"404", 3, `status was 404: {"error":"no such file"}`},
	} {
		for _, version := range []string{"1.1", "2"} {
			r := get(t, drivertest.Fields{"url": "http://" + addr + "/" + c.path, "parts": c.parts, "version": version}, time.Minute)
			if r.Err != nil || fmt.Sprint(r.Answer) != c.want {
				t.Errorf("%s in %d parts over HTTP/%s: %v, %v, want %s", c.path, c.parts, version, r.Err, r.Answer, c.want)
			}
		}
	}
}

func TestFaults(t *testing.T) {
	d := New()
	for _, c := range []struct {
		fields drivertest.Fields
		want   string
	}{
		{drivertest.Fields{}, "url: a URL is missing"},
		{drivertest.Fields{"url": "http://a/", "sha256": "abc"}, "sha256: a SHA-256 has 64 hexadecimal digits, this has 3 characters"},
		{drivertest.Fields{"url": "http://a/", "max_bytes": 0}, "max_bytes: a limit of nothing downloads nothing: leave it out for no limit"},
		{drivertest.Fields{"url": "http://a/", "parts": 0}, "parts: a download has at least one part"},
		{drivertest.Fields{"url": "http://a/", "parts": 65}, "parts: a download may have 64 parts, not 65"},
		{drivertest.Fields{"url": "http://a/", "parts": 2, "sha256": strings.Repeat("0", 64)}, "sha256: the checksum of parts that come at the same time is not computed: leave out parts or sha256"},
		{drivertest.Fields{"url": "http://a/", "parts": 2, "max_bytes": 5}, "max_bytes: a download in parts is one of the whole: leave out parts or max_bytes"},
		{drivertest.Fields{"url": "http://a/", "parts": 2, "compression": true}, "compression: the parts of a compressed body can't be unpacked apart: leave out parts or compression"},
		{drivertest.Fields{"url": "http://a/", "parts": 2, "headers": drivertest.Fields{"range": "bytes=0-1"}}, "headers.range: range is set by the driver, from parts"},
		{drivertest.Fields{"url": "ftp://a/", "max_bytes": 0}, "url: a URL begins with http:// or https://, not with ftp://; max_bytes: a limit of nothing downloads nothing: leave it out for no limit"},
	} {
		_, err := d.Prepare(drivertest.NewOp(t, d, c.fields))
		if err == nil || err.Error() != c.want {
			t.Errorf("%v:\n got %v\nwant %s", c.fields, err, c.want)
		}
	}
}

// Memory stays flat however large the answer is.
func TestFlatMemory(t *testing.T) {
	const size = 256 << 20
	addr, _ := serve(t, nil)
	for _, version := range []string{"1.1", "2"} {
		b := drivertest.NewBench(t, New(), drivertest.Fields{"url": fmt.Sprintf("http://%s/?size=%d", addr, size), "version": version}, drivers.Pool{Users: 1})
		session := b.Open()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b.Must(session)
		runtime.ReadMemStats(&after)
		// HTTP/2 may buffer 4 MiB a stream; the rest is room for the server and the collector.
		if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 64<<20 {
			t.Errorf("HTTP/%s: the heap grew by %d MiB", version, grown>>20)
		}
	}
}

// Many at once keep memory flat as well, in parts and in one.
func TestFlatMemoryOfMany(t *testing.T) {
	const users, limit = 20, 200 << 20
	whole := 50 << 20
	if n, err := strconv.Atoi(os.Getenv("PLANRUN_TEST_DOWNLOAD_MB")); err == nil { // for a longer run by hand
		whole = n << 20
	}
	block := make([]byte, 256<<10) // what the server sends again and again
	addr, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		size, _ := strconv.ParseInt(r.FormValue("size"), 10, 64)
		e := extent{0, size - 1}
		if r.Header.Get("Range") != "" {
			fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &e.first, &e.last)
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", e.first, e.last, size))
			w.Header().Set("Content-Length", strconv.FormatInt(e.length(), 10))
			w.WriteHeader(http.StatusPartialContent)
		}
		for left := e.length(); left > 0; {
			n, err := w.Write(block[:min(left, int64(len(block)))])
			if left -= int64(n); err != nil {
				return
			}
		}
	})
	for _, fields := range []drivertest.Fields{{"version": "1.1"}, {"version": "2"}, {"version": "1.1", "parts": 4}, {"version": "2", "parts": 4}} {
		t.Run(fmt.Sprint(fields), func(t *testing.T) {
			size := whole
			if fields["version"] == "2" && os.Getenv("PLANRUN_TEST_DOWNLOAD_MB") == "" {
				size /= 5 // slow under the race detector
			}
			fields["url"] = fmt.Sprintf("http://%s/?size=%d", addr, size)
			b := drivertest.NewBench(t, New(), fields, drivers.Pool{Users: users})
			var wg sync.WaitGroup
			for range users {
				session := b.Open()
				wg.Go(func() {
					if r := b.Do(t.Context(), session, 5*time.Minute); r.Err != nil || r.BytesIn != int64(size) {
						t.Errorf("%v after %d bytes", r.Err, r.BytesIn)
					}
				})
			}
			ended := make(chan struct{})
			go func() { wg.Wait(); close(ended) }()
			var greatest uint64
			for running := true; running; {
				select {
				case <-ended:
					running = false
				case <-time.After(10 * time.Millisecond):
				}
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				greatest = max(greatest, m.HeapInuse+m.StackInuse)
			}
			t.Logf("%d MiB at most", greatest>>20)
			if greatest > limit {
				t.Errorf("%d MiB were in use, more than %d", greatest>>20, limit>>20)
			}
		})
	}
}

func BenchmarkDownload(b *testing.B) {
	const size = 256 << 20
	addr, _ := serve(b, nil)
	for _, version := range []string{"1.1", "2"} {
		for _, query := range []string{"", "&chunked=1"} {
			b.Run(version+query, func(b *testing.B) {
				bench := drivertest.NewBench(b, New(), drivertest.Fields{"url": fmt.Sprintf("http://%s/?size=%d%s", addr, size, query), "version": version}, drivers.Pool{Users: 1})
				session := bench.Open()
				b.SetBytes(size)
				for b.Loop() {
					bench.Must(session)
				}
			})
		}
	}
}

package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/planrun/planrun/engine/clock"
	"github.com/planrun/planrun/lab"
	"github.com/planrun/planrun/lab/service/node"
)

// Gateway is a web service like [HTTP] that asks another service, its node, for what it answers: server to server.
//
//	GET /                what this is, as JSON
//	GET /strings?bytes=N a random string of N bytes (8192) from the node
//	any /status/CODE     an answer with this status, once the whole request has come; the node is not asked
//
// A node of kind http is asked for its /strings over HTTP/1.1, by connections that are kept and as many as are needed; one
// of kind grpc by its Work, over one connection. No route lies between them. A gateway works on a request first, as its
// own delay, serial and slots say, then asks.
//
// It answers 504 when the node has not answered within the gateway's time-out, or within the node's own, and 502 when the
// node can't be reached or answers with a failure. It tries once. Whoever gives up at the gateway is given up at the node.
type Gateway struct {
	web
	name    string
	work    work
	timeout time.Duration // 0: none
	node    source
}

// source is what a gateway asks.
type source interface {
	// ask returns n bytes of random text. It is called concurrently.
	ask(ctx context.Context, n int64) ([]byte, error)
	close()
}

// mostForwarded is how many bytes an answer may have: a gateway keeps it in memory.
const mostForwarded = mostPayload

// ListenGateway starts a service of kind gateway in front of a node that listens at an address already. The authority is
// needed if one of the two has TLS.
func ListenGateway(c *clock.Clock, spec, behind lab.Service, address string, authority *Authority) (*Gateway, error) {
	var secure *tls.Config
	if behind.TLS {
		secure = &tls.Config{RootCAs: authority.pool()}
	}
	g := &Gateway{name: spec.Name, work: newWork(c, spec), timeout: spec.Timeout}
	switch behind.Kind {
	case lab.HTTP:
		g.node = newWebSource(address, secure)
	case lab.GRPC:
		var err error
		if g.node, err = newRPCSource(address, secure); err != nil {
			return nil, fmt.Errorf("start service %s: %w", spec.Name, err)
		}
	default:
		return nil, fmt.Errorf("start service %s: a gateway can't ask %s, which is %s", spec.Name, behind.Name, behind.Kind)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", home(spec.Name))
	mux.HandleFunc("GET /strings", g.strings)
	mux.HandleFunc("/status/{code}", statusAsked)
	if err := g.start(spec, authority, mux); err != nil {
		g.node.close()
		return nil, err
	}
	return g, nil
}

// Close breaks off all connections.
func (g *Gateway) Close() error {
	err := g.web.Close()
	g.node.close()
	return err
}

func (g *Gateway) strings(w http.ResponseWriter, r *http.Request) {
	n, err := size(r, "bytes", lab.DefaultStrings)
	if err == nil && n > mostForwarded {
		err = fmt.Errorf("a gateway answers with at most %d bytes", mostForwarded)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if g.work.do(r.Context()) != nil {
		return
	}
	ctx := r.Context()
	if g.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, g.timeout)
		defer cancel()
	}
	body, err := g.node.ask(ctx, n)
	switch {
	case r.Context().Err() != nil:
		// Nobody waits for an answer any more.
	case errors.Is(err, context.DeadlineExceeded):
		http.Error(w, "the node did not answer in time", http.StatusGatewayTimeout)
	case err != nil:
		http.Error(w, "the node failed: "+err.Error(), http.StatusBadGateway)
	default:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body)
	}
}

// webSource asks a node of kind http.
type webSource struct {
	url    string
	client http.Client
}

func newWebSource(address string, secure *tls.Config) *webSource {
	tr := &http.Transport{
		TLSClientConfig:     secure,
		MaxIdleConnsPerHost: 1 << 16, // a connection that was needed once is kept
		DisableCompression:  true,
		Protocols:           new(http.Protocols),
	}
	tr.Protocols.SetHTTP1(true)
	scheme := "http"
	if secure != nil {
		scheme = "https"
	}
	return &webSource{url: scheme + "://" + address + "/strings?bytes=", client: http.Client{Transport: tr}}
}

func (s *webSource) ask(ctx context.Context, n int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+strconv.FormatInt(n, 10), nil)
	if err != nil {
		return nil, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	body := make([]byte, n)
	_, err = io.ReadFull(resp.Body, body)
	return body, err
}

func (s *webSource) close() { s.client.CloseIdleConnections() }

// rpcSource asks a node of kind grpc.
type rpcSource struct{ channel *grpc.ClientConn }

func newRPCSource(address string, secure *tls.Config) (*rpcSource, error) {
	transport := insecure.NewCredentials()
	if secure != nil {
		transport = credentials.NewTLS(secure)
	}
	channel, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostForwarded+1<<10)),
		grpc.WithIdleTimeout(0), grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(), grpc.WithNoProxy(),
	)
	if err != nil {
		return nil, err
	}
	return &rpcSource{channel}, nil
}

func (s *rpcSource) ask(ctx context.Context, n int64) ([]byte, error) {
	reply := new(node.WorkReply)
	err := s.channel.Invoke(ctx, node.WorkMethod, &node.WorkRequest{Bytes: n}, reply)
	if status.Code(err) == codes.DeadlineExceeded {
		return nil, context.DeadlineExceeded
	}
	return []byte(reply.Payload), err
}

func (s *rpcSource) close() { s.channel.Close() }

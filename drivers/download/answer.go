package download

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"

	"github.com/planrun/planrun/drivers/http/wire"
)

// answer is what an expectation looks at. It also takes in the body, if its checksum is asked for.
type answer struct {
	response *wire.Response // of the first part, or the one that failed
	status   int
	bytes    int64
	limited  bool
	meter    meter
	hashed   bool
	hash     hash.Hash
}

func (a *answer) begin(hashed bool, response *wire.Response) {
	a.response, a.hashed = response, hashed
	a.status, a.bytes, a.limited = 0, 0, false
	a.meter.reset()
	if !hashed {
		return
	}
	if a.hash == nil {
		a.hash = sha256.New()
	}
	a.hash.Reset()
}

// Begin implements wire.Observer.
func (a *answer) Begin(*wire.Response) error { a.meter.begin(); return nil }

// Arrive implements wire.Observer.
func (a *answer) Arrive(n int) { a.meter.add(n) }

// Take implements wire.Sink.
func (a *answer) Take(p []byte) error {
	if a.hashed {
		a.hash.Write(p)
	}
	return nil
}

func (a *answer) sum() string { return hex.EncodeToString(a.hash.Sum(nil)) }

// String is the status and how the body of a failure begins, for the examples of failures.
func (a *answer) String() string { return a.response.String() }

// Number implements drivers.Answer.
func (a *answer) Number(name string) (float64, bool) {
	switch name {
	case "status":
		return float64(a.status), true
	case "bytes":
		return float64(a.bytes), true
	case "stalls":
		return float64(a.meter.stalls), true
	case "steady":
		return a.meter.steady()
	}
	return 0, false
}

// Value implements drivers.Answer.
func (a *answer) Value(name string) (any, error) {
	switch name {
	case "status":
		return int64(a.status), nil
	case "bytes":
		return a.bytes, nil
	case "headers":
		return a.response.Headers(), nil
	case "limited":
		return a.limited, nil
	case "stalls":
		return a.meter.stalls, nil
	case "steady":
		if speed, ok := a.meter.steady(); ok {
			return int64(speed), nil
		}
		return nil, errors.New("the transfer was too short to tell its speed")
	case "sha256":
		if !a.hashed {
			return nil, errors.New("the checksum was not computed, because no expectation reads it")
		}
		return a.sum(), nil
	}
	return nil, fmt.Errorf("a download has no %s", name)
}

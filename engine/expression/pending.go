package expression

import (
	"errors"

	"github.com/planrun/planrun/drivers"
)

var errPending = errors.New("not evaluated")

type Template struct{}

func ParseTemplate(src string, scope *Scope) (*Template, []*Error) { return &Template{}, nil }
func (t *Template) Constant() (any, bool)                          { return nil, false }
func (t *Template) Eval(in *drivers.Input) (any, error)            { return nil, errPending }
func (t *Template) AppendText(dst []byte, in *drivers.Input) ([]byte, error) {
	return dst, errPending
}

type Expectation struct{}

func ParseExpectation(src string, names []drivers.Name, scope *Scope) (*Expectation, []*Error) {
	return &Expectation{}, nil
}
func (e *Expectation) Reads() []string { return nil }
func (e *Expectation) Check(a drivers.Answer, in *drivers.Input) (bool, error) {
	return false, errPending
}
func (e *Expectation) Explain(a drivers.Answer, in *drivers.Input) string { return "" }
func (e *Expectation) String() string                                     { return "" }

type Assertion struct{}

func ParseAssertion(src string, names Names) (*Assertion, []*Error) { return &Assertion{}, nil }
func (a *Assertion) Addresses() []*Address                          { return nil }
func (a *Assertion) Judge(get func(i int) (float64, bool)) Judgement {
	return Judgement{Truth: Unknown}
}
func (a *Assertion) Reads(metrics ...string) bool { return false }
func (a *Assertion) String() string               { return "" }

// Reserved tells why a name can't be used for a scenario, phase, target or step; "" if it can.
func Reserved(name string) string { return "" }

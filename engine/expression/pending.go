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

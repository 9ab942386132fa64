package plan

import (
	"regexp"
	"strings"

	"github.com/planrun/planrun/engine/diag"
)

var (
	// credentialKeys matches the names of headers and metadata that prove who is calling.
	credentialKeys = regexp.MustCompile(`(?i)^(authorization|proxy-authorization|cookie|x-api-key|api-key|apikey|x-auth-token|x-access-token)$`)
	credentialKind = regexp.MustCompile(`^(?i:bearer|basic|token|apikey|digest) +`)
)

// credentials finds what should be a secret and is written in the plan. It is kept out of reports all the same.
func (b *binder) credentials(n *node) {
	for _, group := range []string{"headers", "metadata"} {
		for _, p := range n.value(group).entries() {
			value := credentialKind.ReplaceAllString(p.value.text, "")
			if p.value.shape != scalar || !credentialKeys.MatchString(p.key.text) || strings.Contains(value, "${") || len(value) < 8 {
				continue
			}
			s := b.of(p.value)
			line, col, end := s.span(p.value)
			s.add(diag.Finding{
				Place: diag.Place{File: s.file, Line: line, Column: col}, EndColumn: end, Severity: diag.Warning,
				Message: "a credential is written in the plan, where everybody can read it",
				Hint:    "write secrets: {TOKEN: {env: API_TOKEN}}, and ${secret.TOKEN} here",
			})
			b.hidden = append(b.hidden, value)
		}
	}
}

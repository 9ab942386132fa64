package plan

import "strings"

// transaction decodes the steps of a database transaction, and adds the calls that begin and end it.
func (f *flow) transaction(p *Part, s *section, name bound) {
	key := s.n.keyOf("transaction")
	from := len(f.scenario.Steps)
	parts := f.steps(s.node("transaction"), key)
	if name.node != nil {
		f.group(p, name.node, name.text)
	}
	steps := f.scenario.Steps[from:]
	if parts == nil {
		return
	}
	if len(steps) == 0 {
		f.on(key, "write - sql: and a statement", "the transaction has no statement")
		return
	}
	if _, known := f.format.drivers["sql"]; !known {
		return
	}
	sound := true
	for _, st := range steps {
		for t, a := range st.Actions {
			switch {
			case a.Call == nil:
				sound = false
			case a.Driver != "sql":
				f.atPlace(st.Place, "a transaction is of sql steps, and this one calls with "+a.Driver, "write it before or behind the transaction")
				sound = false
			case steps[0].Actions[t].Call != nil && a.Call.Endpoint().Key != steps[0].Actions[t].Call.Endpoint().Key:
				f.atPlace(st.Place, "a transaction is of one database, and this step calls another one than the first", "")
				sound = false
			}
		}
	}
	if !sound {
		return
	}
	first := f.written[steps[0]]
	prefix := ""
	if name.node != nil {
		prefix = name.text + "_"
	}
	begin := f.control(first, key, prefix+"begin", "BEGIN")
	if begin == NoCall {
		return
	}
	commit := f.control(first, key, prefix+"commit", "COMMIT")
	rollback := f.control(first, key, "", "ROLLBACK")
	if commit == NoCall || rollback == NoCall {
		return
	}
	f.unseen = append(f.unseen, f.scenario.Steps[rollback])
	f.scenario.Steps = f.scenario.Steps[:rollback]
	p.Parts, p.Transaction = parts, &Transaction{Begin: begin, Commit: commit}
	f.ends = append(f.ends, p.Transaction)
}

// control adds a call of a transaction, over the connection of one of its steps.
func (f *flow) control(like map[string]*writtenStep, at *node, name, statement string) int {
	step := &Step{Name: name, Place: f.place(at)}
	for _, t := range f.targets {
		w := *like[t.name]
		w.expect, w.capture = nil, nil
		text := statement
		for range 2 {
			w.n = w.n.without("query", "exec", "query_file", "args", "prepare").with("exec", text).with("prepare", "false")
			a, _ := f.action(&w, t)
			if a.Call == nil {
				return NoCall
			}
			if statement != "BEGIN" || text != statement || !strings.HasPrefix(a.Call.Endpoint().Name, "sqlserver") {
				step.Actions = append(step.Actions, a)
				break
			}
			text = "BEGIN TRANSACTION" // BEGIN alone opens a block of T-SQL
		}
	}
	if name == "begin" && f.named[name] != nil {
		f.on(at, "write name: beside transaction:, as in - name: transfer", "scenario %s has two transactions without a name", f.scenario.Name)
		return NoCall
	}
	if name != "" && !f.name(at, name) {
		return NoCall
	}
	f.scenario.Steps = append(f.scenario.Steps, step)
	return len(f.scenario.Steps) - 1
}

// without returns a mapping without some keys.
func (n *node) without(keys ...string) *node {
	c := *n
	c.pairs = nil
	for _, p := range n.pairs {
		keep := true
		for _, k := range keys {
			keep = keep && p.key.text != k
		}
		if keep {
			c.pairs = append(c.pairs, p)
		}
	}
	return &c
}

// with returns a mapping with another key, whose value is plain text.
func (n *node) with(key, text string) *node {
	c := *n
	at := node{src: n.src, shape: scalar, line: n.line, col: n.col}
	k, v := at, at
	k.text, v.text = key, text
	c.pairs = append(c.pairs[:len(c.pairs):len(c.pairs)], pair{&k, &v})
	return &c
}

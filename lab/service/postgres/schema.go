package postgres

import (
	"context"
	"database/sql"
)

// schema is what is known of the tables, to tell the types of parameters and expressions.
type schema struct {
	tables  map[string][]column // by name, in their order
	columns map[string]oid      // by name, of any table; unknown if tables differ
}

// column is one of a table, or of an answer.
type column struct {
	name string
	kind oid
}

func readSchema(ctx context.Context, conn *sql.Conn) (*schema, error) {
	rows, err := conn.QueryContext(ctx, `
		SELECT m.name, c.name, c.type
		FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c
		WHERE m.type IN ('table', 'view')
		ORDER BY m.name, c.cid`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	s := &schema{tables: map[string][]column{}, columns: map[string]oid{}}
	for rows.Next() {
		var table, name, declared string
		if err := rows.Scan(&table, &name, &declared); err != nil {
			return nil, err
		}
		kind := typeByName(declared)
		s.tables[table] = append(s.tables[table], column{name, kind})
		if known, ok := s.columns[name]; ok && known != kind {
			kind = unknown
		}
		s.columns[name] = kind
	}
	return s, rows.Err()
}

// columnAt is the type of a column named by a token, or unknown.
func (s *schema) columnAt(tokens []token, i int) oid {
	if i < 0 || i >= len(tokens) || tokens[i].kind != word {
		return unknown
	}
	return s.columns[tokens[i].name()]
}

var comparisons = map[string]bool{
	"=": true, "==": true, "<>": true, "!=": true, "<": true, "<=": true, ">": true, ">=": true,
	"+": true, "-": true, "*": true, "/": true, "LIKE": true, "ILIKE": true,
}

// parameters tells the types of a statement's parameters, as far as their places say: compared with a column, assigned or
// inserted to one, cast, or a limit. given are the types that the client has declared.
func (s *schema) parameters(tokens []token, given []uint32) ([]oid, error) {
	var kinds []oid
	for i, t := range tokens {
		if t.kind != parameter {
			continue
		}
		n := t.index()
		if n == 0 {
			return nil, fail(syntaxError, "there is no parameter %s", t.text)
		}
		for len(kinds) < n {
			kinds = append(kinds, unknown)
		}
		if kinds[n-1] == unknown {
			kinds[n-1] = s.parameter(tokens, i)
		}
	}
	for i, o := range given {
		if o != 0 && i < len(kinds) {
			kinds[i] = oid(o)
		}
	}
	s.inserted(tokens, kinds)
	return kinds, nil
}

// parameter tells the type of the parameter at i.
func (s *schema) parameter(tokens []token, i int) oid {
	at := func(j int) token {
		if j < 0 || j >= len(tokens) {
			return token{kind: symbol}
		}
		return tokens[j]
	}
	upper := func(j int) string {
		if t := at(j); t.kind == word || t.kind == symbol {
			return upperCase(t.text)
		}
		return ""
	}
	if at(i+1).is("::") || at(i+1).is("AS") && at(i-1).is("(") && at(i-2).is("CAST") {
		return typeByName(at(i + 2).name())
	}
	if before := upper(i - 1); before == "LIMIT" || before == "OFFSET" {
		return int8
	}
	if comparisons[upper(i-1)] {
		if k := s.operand(tokens, i-2); k != unknown {
			return k
		}
	}
	if comparisons[upper(i+1)] {
		j := i + 2
		for at(j + 1).is(".") {
			j += 2
		}
		if k := s.columnAt(tokens, j); k != unknown {
			return k
		}
	}
	switch {
	case at(i - 1).is("BETWEEN"):
		return s.columnAt(tokens, i-2)
	case at(i-1).is("AND") && at(i-3).is("BETWEEN"):
		return s.columnAt(tokens, i-4)
	}
	// x IN ($1, $2)
	j := i - 1
	for at(j).is(",") || at(j).kind == parameter || at(j).kind == number || at(j).kind == literal {
		j--
	}
	if at(j).is("(") && at(j-1).is("IN") {
		j -= 2
		if at(j).is("NOT") {
			j--
		}
		return s.columnAt(tokens, j)
	}
	return unknown
}

// operand tells the type of the operand of an operator that ends with the token at i.
func (s *schema) operand(tokens []token, i int) oid {
	if i < 0 || !tokens[i].is(")") {
		return s.columnAt(tokens, i)
	}
	from := i
	for depth := 0; from >= 0; from-- {
		if tokens[from].is(")") {
			depth++
		} else if tokens[from].is("(") {
			if depth--; depth == 0 {
				break
			}
		}
	}
	if from < 0 {
		return unknown
	}
	if from > 0 && tokens[from-1].kind == word && !reserved[upperCase(tokens[from-1].text)] {
		from--
	}
	return s.expression(tokens[from : i+1])
}

// unquote makes numbers of literals that are compared with a number that has no affinity, such as length(x) > '3'. In
// PostgreSQL a literal takes the type of what it is compared with.
func (s *schema) unquote(tokens []token) []token {
	var changed []token
	for i, t := range tokens {
		if t.kind != literal || i < 2 || !comparisons[upperCase(tokens[i-1].text)] || !tokens[i-2].is(")") {
			continue
		}
		inner := t.text[1:max(len(t.text)-1, 1)]
		if _, whole := parseWhole(inner); !whole {
			continue
		}
		if k := s.operand(tokens, i-2); k == int8 || k == float8 || k == numeric {
			if changed == nil {
				changed = append(changed, tokens...)
			}
			changed[i].kind, changed[i].text = number, inner
		}
	}
	if changed != nil {
		return changed
	}
	return tokens
}

// inserted tells the types of parameters that stand alone for a value of INSERT INTO table (columns) VALUES (...), (...).
func (s *schema) inserted(tokens []token, kinds []oid) {
	i := 0
	for i < len(tokens) && !tokens[i].is("INTO") {
		i++
	}
	if i+2 >= len(tokens) || !(tokens[0].is("INSERT") || tokens[0].is("REPLACE")) {
		return
	}
	i++
	for i+2 < len(tokens) && tokens[i+1].is(".") {
		i += 2
	}
	columns := s.tables[tokens[i].name()]
	i++
	if i < len(tokens) && tokens[i].is("(") {
		of := map[string]oid{}
		for _, c := range columns {
			of[c.name] = c.kind
		}
		columns = nil
		for i++; i < len(tokens) && !tokens[i].is(")"); i++ {
			if tokens[i].kind == word {
				columns = append(columns, column{tokens[i].name(), of[tokens[i].name()]})
			}
		}
		i++
	}
	if i >= len(tokens) || !tokens[i].is("VALUES") {
		return
	}
	depth, place := 0, 0
	for i++; i < len(tokens); i++ {
		switch t := tokens[i]; {
		case t.is("("):
			if depth++; depth == 1 {
				place = 0
			}
		case t.is(")"):
			depth--
		case t.is(",") && depth == 1:
			place++
		case depth == 0 && t.kind == word: // ON CONFLICT, RETURNING
			return
		case t.kind == parameter && depth == 1 && place < len(columns):
			if n := t.index(); kinds[n-1] == unknown {
				kinds[n-1] = columns[place].kind
			}
		}
	}
}

// functions whose result has a type of its own.
var functions = map[string]oid{
	"COUNT": int8, "LENGTH": int8, "INSTR": int8, "UNICODE": int8, "CHANGES": int8, "ROW_NUMBER": int8, "RANK": int8,
	"AVG": float8, "TOTAL": float8, "SQRT": float8, "POW": float8,
	"LOWER": text, "UPPER": text, "SUBSTR": text, "SUBSTRING": text, "REPLACE": text, "TRIM": text, "LTRIM": text,
	"RTRIM": text, "HEX": text, "PRINTF": text, "FORMAT": text, "GROUP_CONCAT": text, "STRING_AGG": text, "TYPEOF": text,
	"QUOTE": text, "DATE": text, "TIME": text, "DATETIME": text, "STRFTIME": text, "CONCAT": text,
}

// expression tells the type of an expression of which no value was seen: that of the function that begins it, or of the
// first column, number or string in it.
func (s *schema) expression(tokens []token) oid {
	for i, t := range tokens {
		switch t.kind {
		case word:
			if t.is("CAST") {
				for j := len(tokens) - 1; j > i; j-- {
					if tokens[j].kind == word {
						return typeByName(tokens[j].name())
					}
				}
			}
			if i+1 < len(tokens) && tokens[i+1].is("(") {
				if k, ok := functions[upperCase(t.text)]; ok {
					return k
				}
				continue
			}
			if k := s.columns[t.name()]; k != unknown {
				return k
			}
		case number:
			if _, whole := parseWhole(t.text); whole {
				return int8
			}
			return float8
		case literal:
			return text
		}
	}
	return unknown
}

// expressions cuts the list of a SELECT or RETURNING that begins at from into its expressions.
func expressions(tokens []token, from int) [][]token {
	var all [][]token
	depth, first, i := 0, from, from
	for ; i < len(tokens); i++ {
		t := tokens[i]
		switch {
		case t.is("("):
			depth++
		case t.is(")"):
			depth--
		case depth == 0 && t.is(","):
			all = append(all, tokens[first:i])
			first = i + 1
		case i > first && depth == 0 && (t.is("FROM") || t.is("WHERE") || t.is("LIMIT") || t.is("ORDER") || t.is("UNION") || t.is("GROUP")):
			return append(all, tokens[first:i])
		}
	}
	if first >= i {
		return all
	}
	return append(all, tokens[first:i])
}

package plan

import (
	"slices"
	"strings"

	"github.com/planrun/planrun/drivers"
)

// otherWords are what other tools, or other places of a plan, call a key. Of several the first that is known at a place is meant.
var otherWords = map[string][]string{
	"auth":              {"basic"},
	"authorization":     {"bearer"},
	"arguments":         {"args"},
	"arrival_rate":      {"rate"},
	"assertions":        {"assert"},
	"bindings":          {"args"},
	"body":              {"json", "message"},
	"check":             {"expect", "assert"},
	"checks":            {"expect", "assert"},
	"concurrency":       {"users", "connections"},
	"connection":        {"dsn"},
	"connection_string": {"dsn"},
	"data":              {"json", "message", "args"},
	"database":          {"dsn"},
	"delay":             {"pause"},
	"duration":          {"hold"},
	"endpoint":          {"url", "address", "dsn"},
	"env":               {"environments"},
	"execute":           {"exec"},
	"extract":           {"capture"},
	"feeders":           {"data"},
	"file":              {"csv", "body_file"},
	"get":               {"url"},
	"headers":           {"metadata"},
	"host":              {"address", "url"},
	"hostname":          {"host", "address"},
	"if":                {"when"},
	"imports":           {"include"},
	"insecure":          {"plaintext"},
	"iterations":        {"count"},
	"latency":           {"delay", "rtt"},
	"limits":            {"assert"},
	"loop":              {"repeat"},
	"max_concurrency":   {"max_in_flight"},
	"max_vus":           {"max_in_flight"},
	"message":           {"json"},
	"method":            {"call"},
	"name":              {"plan", "title"},
	"outputs":           {"sinks"},
	"parameters":        {"args", "query", "vars"},
	"params":            {"args", "query", "vars"},
	"payload":           {"json", "message", "body"},
	"proto_files":       {"proto"},
	"qps":               {"rate"},
	"ramp_to":           {"rate"},
	"ramp_up":           {"ramp"},
	"reports":           {"sinks"},
	"request":           {"message"},
	"rps":               {"rate"},
	"save":              {"capture"},
	"services":          {"targets"},
	"setup":             {"before"},
	"sleep":             {"pause"},
	"sql":               {"query"},
	"statement":         {"query"},
	"teardown":          {"after"},
	"think_time":        {"pause"},
	"threads":           {"users"},
	"thresholds":        {"assert"},
	"times":             {"repeat"},
	"token":             {"bearer"},
	"uri":               {"url", "address"},
	"url":               {"address", "dsn"},
	"user_count":        {"users"},
	"validate":          {"expect"},
	"variables":         {"vars"},
	"vus":               {"users"},
	"wait":              {"pause"},
}

// otherWord is the key that is called here what key is called elsewhere; "" if none is known.
func otherWord(key string, fields []Field) string {
	for _, word := range otherWords[strings.ReplaceAll(strings.ToLower(key), "-", "_")] {
		if find(fields, word) != nil {
			return word
		}
	}
	return ""
}

// elsewhere says where a key belongs that is known, but not at this place; "" if it is known nowhere near.
func (b *binder) elsewhere(key string, fields []Field) string {
	f := b.format
	is := func(table []Field) bool { return len(fields) > 0 && len(table) > 0 && &fields[0] == &table[0] }
	inPhase := slices.ContainsFunc(f.phases, func(kind Field) bool { return find(kind.Keys, key) != nil })
	for _, name := range f.names {
		if is(find(f.step, name).Keys) && (find(f.item, key) != nil || find(f.scenario, key) != nil) {
			return "begin it where " + name + ": begins, if it belongs to the step"
		}
	}
	for _, group := range fields {
		if group.Kind == drivers.Group && find(group.Keys, key) != nil {
			return "write it in " + group.Key + ":"
		}
	}
	switch {
	case is(f.item), is(f.step), is(f.branch):
		if key == "assert" {
			return "write it in the scenario, with the name of the step in front, as in login.p95 < 500ms"
		}
	case is(f.scenario):
		switch {
		case find(f.item, key) != nil:
			return "write it in a step, below steps:"
		case find(f.phases, key) != nil:
			return "write it below phases:, with a - before it"
		case inPhase:
			return "write it in a phase, as in - ramp-and-hold: {rate: 10/s, hold: 30s}"
		}
	case is(f.plan):
		switch {
		case find(f.defaults, key) != nil:
			return "write it in defaults:, or in a scenario"
		case find(f.scenario, key) != nil:
			return "write it in a scenario"
		}
	case slices.ContainsFunc(f.phases, func(kind Field) bool { return is(kind.Keys) }):
		if inPhase && find(f.scenario, key) == nil {
			for _, kind := range f.phases {
				if find(kind.Keys, key) != nil {
					return key + " is a parameter of " + kind.Key
				}
			}
		}
	}
	return ""
}

// holdsAny tells whether any key may stand in the value of a field, as names do.
func (f *Field) holdsAny() bool {
	return f.Kind == NamedKind || f.Kind == VarsKind || f.Kind == TextMapKind || f.Kind == drivers.Texts
}

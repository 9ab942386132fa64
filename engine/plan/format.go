package plan

import (
	"maps"
	"slices"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/data"
)

// format is the tables of a plan, with the steps of the drivers there are.
type format struct {
	drivers map[string]drivers.Driver
	names   []string // of drivers, sorted
	sinks   []string

	plan, defaults, scenario, step, results []Field
	item, branch                            []Field // of a flow
	capture                                 []Field // the long form
	data, secret, background                []Field
	phases                                  []Field // by kind; Keys are the parameters
	stage, long                             []Field
	sink                                    []Field // by kind
	lab, service, route, relay              []Field
}

// entry makes a field of the tables below.
func entry(key string, kind drivers.Kind, title, doc string, examples ...string) Field {
	return Field{Field: drivers.Field{Key: key, Kind: kind, Title: title, Doc: doc, Examples: examples}}
}

func (f Field) otherwise(def string) Field { f.Default = def; return f }

func (f Field) choices(c ...string) Field { f.Choices = c; return f }

func (f Field) keys(k []Field) Field { f.Keys = k; return f }

func (f Field) of(item Field) Field { f.Item = &item; return f }

func (f Field) exactly(keys ...string) Field { f.Exactly = keys; return f }

func (f Field) main() Field { f.Main = true; return f }

func (f Field) alone() Field { f.Alone = true; return f }

func (f Field) required() Field { f.Required = true; return f }

func newFormat(known map[string]drivers.Driver, sinks []string) *format {
	f := &format{drivers: known, names: slices.Sorted(maps.Keys(known)), sinks: sinks}

	f.long = []Field{
		entry("assert", ExpressionKind, "assertion", "What has to hold.", "p95 < 500ms").required(),
		entry("severity", drivers.Choice, "severity", "`warn` reports the assertion and does not fail the run.").choices("fail", "warn").otherwise("fail"),
		entry("window", drivers.Duration, "window", "It has to hold in each whole window of this length, and not of the whole. The report shows the worst one.", "10s"),
		entry("abort", drivers.Bool, "abort", "`true` looks every second at what was measured so far of a cell, or at each whole `window` once all of it has ended, and ends the run once the assertion is false of it.").otherwise("false"),
		entry("after", drivers.Duration, "grace time", "How far into a round `abort` looks for the first time.", "10s").otherwise("0s"),
		entry("when", ExpressionKind, "condition", "Whether the assertion is judged at all. It is known before the load: of `vars` and `env`.", `env.STAGE == "prod"`),
	}
	title := entry("title", drivers.Text, "title", "What people read instead of the name.")
	timeout := entry("timeout", drivers.Duration, "time-out", "How long an iteration may take, from its start. The innermost one counts: phase, scenario, defaults.", "5s", "1m30s").otherwise("30s")
	warmup := entry("warmup", WarmupKind, "warm-up", "Iterations that are not recorded, on the same connections, before the load: a number for each user, or a duration. With `rate` only a duration.", "1", "10s").otherwise("0")
	rounds := entry("rounds", CountKind, "rounds", "How often the phase is repeated. Targets take turns, and from 6 rounds up differences have an interval.", "10").otherwise("1")
	connections := entry("connections", CountKind, "connections", "How many connections all users share. Left out: one for all users with HTTP/2 and gRPC, one per user otherwise.", "4")
	asserts := func(of string) Field {
		return entry("assert", AssertsKind, "assertions", "What has to hold of "+of+". Assertions of the plan, the scenario and the phase add up.", "p95 < 500ms").keys(f.long)
	}
	expect := entry("expect", ExpectsKind, "expectations", "What an answer must be to count as a success, instead of the protocol's own judgement. All of it has to hold.", "status == 200")

	f.stage = []Field{
		entry("rate", RateKind, "rate", "The rate that the stage goes to and holds.", "600/s"),
		entry("users", CountKind, "users", "The number of users that the stage goes to and holds.", "50"),
		entry("ramp", drivers.Duration, "ramp", "How long it takes to get there.", "30s").otherwise("0s"),
		entry("hold", drivers.Duration, "hold", "How long it stays there.", "2m"),
		entry("judge", drivers.Bool, "judged", "`false` reports the hold and does not judge it.").otherwise("true"),
		entry("name", NameKind, "name", "What the hold is called in assertions and reports.", "peak"),
	}
	f.background = []Field{
		entry("scenario", drivers.Text, "scenario", "The scenario that runs along.", "bulk").required().main(),
		entry("users", CountKind, "users", "How many users run it, each one iteration after the other.", "4").otherwise("1"),
	}
	along := entry("background", drivers.Group, "background", "Another scenario that runs along, from the release of the phase to its end. It has cells of its own, named after the phase.").keys(f.background)
	tags := entry("tags", TagsKind, "tags", "Words by which `--only @word` chooses scenarios and phases.")
	common := []Field{
		entry("name", NameKind, "name", "What the phase is called in assertions and reports. Left out: its kind.", "morning_peak"),
		title, timeout, warmup, rounds, connections, along, tags, asserts("the phase"),
	}
	params := func(own ...Field) []Field { return append(own, common...) }
	count := entry("count", CountKind, "count", "How many iterations there are in all.", "50")
	duration := entry("duration", drivers.Duration, "duration", "How long iterations are begun.", "1m")
	pause := entry("pause", SpanKind, "pause", "How long a user waits between two iterations: a duration, or drawn from between two.", "1s", "1s..3s").otherwise("0s")
	group := func(kind Kind, title, doc string, keys []Field) Field {
		return entry(string(kind), drivers.Group, title, doc).keys(keys)
	}
	f.phases = []Field{
		group(Single, "one iteration", "One iteration.", params()).alone(),
		group(Sequential, "one after the other", "One user; the next iteration begins when the last one has ended.", params(count, duration, pause)).exactly("count", "duration"),
		group(Parallel, "at the same time", "The closed model: `users` at work at the same time, released together.", params(
			entry("users", CountKind, "users", "How many users there are.", "50").required(),
			entry("count", CountKind, "count", "How many iterations there are in all, over all users. Left out, with no `duration`: one for each user.", "500"),
			duration, pause)),
		group(RampAndHold, "ramps and holds", "A rate of arrivals (the open model) or a number of users (the closed model), ramped and held. Holds are judged, ramps are reported.", params(
			entry("rate", RateKind, "rate", "Arrivals, whether or not earlier ones have been answered: the open model.", "600/s", "90/min"),
			entry("users", CountKind, "users", "Users at work at the same time: the closed model.", "50"),
			entry("from", RateKind, "from", "Where the first ramp begins: a rate, or a number of users.", "10/s").otherwise("0"),
			entry("ramp", drivers.Duration, "ramp", "How long the ramp to `rate` or `users` takes.", "30s").otherwise("0s"),
			entry("hold", drivers.Duration, "hold", "How long it is held.", "2m"),
			entry("ramp_down", drivers.Duration, "ramp down", "How long the ramp to nothing takes at the end.", "10s").otherwise("0s"),
			entry("stages", SequenceKind, "stages", "Several ramps and holds, one after the other, instead of `ramp` and `hold`.").of(entry("", drivers.Group, "stage", "A ramp, a hold, or both.").keys(f.stage).exactly("rate", "users")),
			entry("arrivals", drivers.Choice, "arrivals", "`even` spaces arrivals evenly; `poisson` draws them, as independent callers would come. Only with `rate`.").choices("even", "poisson").otherwise("even"),
			entry("max_in_flight", CountKind, "most in flight", "How many iterations may be under way at a time; further arrivals wait. Only with `rate`. Left out: the rate times the time-out.", "500"),
			entry("patience", drivers.Duration, "patience", "An arrival that would begin later than this after it was due is dropped. Only with `rate`. Left out: the time-out.", "1s"))).exactly("rate", "users", "stages"),
		group(CapacitySearch, "highest rate", "A search for the highest rate at which `while` holds, on each target by itself. It is `rate_held` in assertions.", params(f.capacity()...)),
	}
	phases := entry("phases", SequenceKind, "phases", "How iterations are driven, one phase after the other.").of(entry("", OneOfKind, "phase", "A kind of phase and its parameters.").keys(f.phases))

	var steps []Field
	for _, name := range f.names {
		steps = append(steps, entry(name, drivers.Group, name+" step", "One call with "+name+".").keys(own(known[name].Fields())))
	}
	f.capture = []Field{
		entry("value", ExpressionKind, "value", "What to take of the answer.", "json.token").required(),
		entry("secret", drivers.Bool, "secret", "`true` keeps it out of everything that is printed or written.").otherwise("false"),
	}
	capture := entry("capture", CaptureKind, "captures", "Values of the answer, by name, that later steps read as `${name}`.").keys(f.capture)
	f.step = append(slices.Clone(steps), expect, capture)
	byTarget := entry("by_target", NamedKind, "step for each target", "Another step for each target, so that they can be compared as one scenario.").of(entry("", drivers.Group, "step", "The step for this target.").keys(f.step).exactly(f.names...))

	f.steps(append(slices.Clone(f.step), byTarget))
	before := func(what string) Field {
		x := *find(f.item, "steps")
		x.Key, x.Title, x.Doc = "before", "before", "Steps that are run once for each target before "+what+", and not measured. What they capture is known to all that follows. A failure ends the run with exit code 3."
		return x
	}
	after := func(what string) Field {
		x := *find(f.item, "steps")
		x.Key, x.Title, x.Doc = "after", "after", "Steps that are run once for each target after "+what+", whatever happened, and not measured."
		return x
	}
	matrix := entry("matrix", MatrixKind, "matrix", "Values by name. The scenario is run for each combination of them, under a name of its own; they are read as `${matrix.name}`. `exclude` and `include` list combinations to leave out or to add.")
	flow, mix := *find(f.item, "steps"), *find(f.item, "mix")
	flow.Title, flow.Doc = "steps", "What an iteration does, in order: calls, pauses, groups and mixes."

	f.scenario = append(append([]Field{title}, steps...), byTarget, flow, mix, expect, before("the phases of the scenario"), after("the phases of the scenario"), matrix, tags, timeout, warmup, rounds, connections, phases, asserts("the scenario"))

	var blocks []Field
	for _, s := range steps {
		s.Title, s.Doc = s.Key+" defaults", "What every "+s.Key+" step has unless it says otherwise."
		blocks = append(blocks, s)
	}
	f.defaults = append([]Field{timeout, warmup, rounds, connections, phases}, blocks...)

	for _, kind := range sinks {
		keys := []Field{entry("path", drivers.Text, "path", "The file that is written, relative to the working directory.", "results/hybrid."+kind).required()}
		keys[0].Main = true
		if kind == "csv" {
			keys = append(keys, entry("rows", drivers.Choice, "rows", "`cells` writes a row for each cell, stage and step; `samples` one for each sample.").choices("cells", "samples").otherwise("cells"))
		}
		f.sink = append(f.sink, entry(kind, drivers.Group, kind+" report", "A report in "+kind+".").keys(keys))
	}
	f.results = []Field{
		entry("path", drivers.Text, "path", "The file of the results stream, relative to the working directory.", "results/hybrid.msgpack").otherwise("results/<plan>-<time>-<4 hex>.msgpack"),
		entry("samples", drivers.Bool, "samples", "`false` keeps no samples, only their sums.").otherwise("true"),
	}

	f.relay = []Field{
		entry("rtt", drivers.Duration, "round trip", "Round trip between the relay and the service.", "11ms"),
		entry("window", drivers.Size, "window", "Bytes in flight between the relay and the service.", "220kB"),
	}
	f.route = []Field{
		entry("rtt", drivers.Duration, "round trip", "Round trip of the route.", "12ms"),
		entry("jitter", drivers.Duration, "jitter", "Drawn for each packet and added to each way.", "1ms"),
		entry("bandwidth", SpeedKind, "bandwidth", "Bytes a second in each direction.", "75MB/s"),
		entry("window", drivers.Size, "window", "Bytes in flight for each connection and direction.", "320kB"),
		entry("relay", drivers.Group, "relay", "A rendezvous over WebSocket between the route and the service.").keys(f.relay),
	}
	work := func(also ...Field) []Field {
		return append([]Field{
			entry("serial", drivers.Duration, "serial work", "Work of each request, one request after the other.", "1500us"),
			entry("delay", SpanKind, "work", "Work of each request, at the same time as that of others: a duration, or drawn from between two.", "100ms", "100ms..120ms"),
			entry("slots", CountKind, "slots", "Requests at work at the same time, for `delay`; further ones queue. Left out: no limit.", "8"),
		}, also...)
	}
	secure := func(speaks string) Field {
		return entry("tls", drivers.Bool, "TLS", "`true` speaks "+speaks+" over TLS.").otherwise("false")
	}
	f.service = []Field{
		entry("http", drivers.Group, "HTTP service", "Answers `/strings?bytes=`, `/file?size=` and more.").keys(work(secure("HTTP/1.1 and HTTP/2"))).alone(),
		entry("grpc", drivers.Group, "gRPC service", "Answers `lab.v1.Node/Work` and three streams, and offers reflection.").keys(work(secure("gRPC"))).alone(),
		entry("gateway", drivers.Group, "gateway", "Answers `/strings?bytes=` over HTTP with what it gets from another service of the lab, by HTTP or gRPC.").keys(work(
			entry("node", drivers.Text, "node", "The service of kind http or grpc that is asked.", "node").required(),
			entry("timeout", drivers.Duration, "time-out", "How long the node may take; then the answer is 504. Left out: no limit.", "800ms"),
			secure("HTTP/1.1 and HTTP/2"))),
		entry("postgres", drivers.Group, "database", "Speaks PostgreSQL's protocol. It has a table `documents` with the columns `id` and `payload`.").keys([]Field{
			entry("rows", CountKind, "rows", "Rows of `documents`.").otherwise("1000"),
			entry("payload", drivers.Size, "payload", "Size of the column `payload`.").otherwise("8KiB"),
		}).alone(),
	}
	f.lab = []Field{
		entry("services", NamedKind, "services", "Systems under test, by name.").of(entry("", OneOfKind, "service", "What the service speaks.").keys(f.service)),
		entry("routes", NamedKind, "routes", "Ways that lead to every service, by name. `lab.<route>.<service>` is an address.").of(entry("", drivers.Group, "route", "How the route is.").keys(f.route)),
	}

	f.secret = []Field{
		entry("env", drivers.Text, "environment variable", "The environment variable that has it.", "API_TOKEN"),
		entry("file", drivers.Text, "file", "The file that has it, its last line break left out.", "/run/secrets/token"),
	}
	f.data = []Field{
		entry("csv", drivers.File, "CSV", "A file whose first line names the columns. Values are taken as they are written.", "users.csv"),
		entry("json", drivers.File, "JSON", "A file of a list of objects.", "users.json"),
		entry("json_lines", drivers.File, "JSON lines", "A file of one object a line.", "users.jsonl"),
		entry("rows", drivers.Tree, "rows", "The rows themselves: a list of mappings."),
		entry("order", drivers.Choice, "order", "`in_turn` begins again behind the last row, `shuffled` takes all rows in another order each time, `random` draws a row for each iteration, `once` uses none twice and ends the phase behind the last.").choices(data.Orders()...).otherwise("in_turn"),
		entry("types", DataTypesKind, "types", "What columns are if not text: `int`, `number` or `bool`."),
		entry("separator", drivers.Text, "separator", "The character between values of CSV, or `tab`.", ";").otherwise(","),
		entry("quote", drivers.Text, "quote", "The character around values of CSV that hold separators.", "'"),
	}

	f.plan = []Field{
		entry("plan", drivers.Text, "name", "What the plan is called in reports. Left out: the name of its file.", "hybrid"),
		entry("description", drivers.Text, "description", "What the plan is for."),
		entry("vars", VarsKind, "variables", "Values by name, read as `${vars.name}` and changed by `--set vars.name=value`."),
		entry("environments", NamedKind, "environments", "Other values of variables, by the name of an environment, which `--env` chooses.").of(entry("", VarsKind, "environment", "Variables that differ in this environment.")),
		entry("secrets", NamedKind, "secrets", "Values that must not be shown, read as `${secret.NAME}`. They come from the environment or a file, and are kept out of all that is printed or written.").of(entry("", drivers.Group, "secret", "Where the secret comes from.").keys(f.secret).exactly("env", "file")),
		entry("data", NamedKind, "data", "Rows that iterations use, read as `${data.users.name}`. The number of the iteration chooses the row, so every target gets the same.").of(entry("", drivers.Group, "rows", "A file, or rows in the plan.").keys(f.data).exactly("csv", "json", "json_lines", "rows")),
		entry("include", drivers.FileList, "include", "Other files whose `vars`, `environments`, `secrets`, `data`, `targets`, `defaults`, `scenarios`, `assert` and `lab` belong to this plan. What this file says itself counts more."),
		entry("targets", NamedKind, "targets", "Variants of the system under test. Every phase runs against each of them. Their keys are free, and read as `${target.key}`.").of(entry("", TextMapKind, "target", "What tells this target from others, such as addresses.")),
		entry("reference", drivers.Text, "reference", "The target that others are compared with. Left out: the first."),
		entry("defaults", drivers.Group, "defaults", "What holds unless a scenario, a phase or a step says otherwise.").keys(f.defaults),
		entry("scenarios", NamedKind, "scenarios", "What iterations do, by name.").of(entry("", drivers.Group, "scenario", "A step or several, and how they are driven.").keys(f.scenario).exactly(append(slices.Clone(f.names), "by_target", "steps", "mix")...)).required(),
		asserts("the whole plan"),
		before("everything else"), after("everything else"),
		entry("sinks", SequenceKind, "reports", "Reports that are written besides the results stream.").of(entry("", OneOfKind, "report", "A kind of report and its file.").keys(f.sink)),
		entry("results", drivers.Group, "results", "Where the results stream goes.").keys(f.results),
		entry("lab", drivers.Group, "lab", "Systems under test for rehearsal, started only when a target needs them.").keys(f.lab),
		entry("against", drivers.Group, "earlier run", "The results of an earlier run, which `previous` stands for in assertions.").keys([]Field{
			entry("path", drivers.Text, "path", "A results file, or one that `planrun save` made of it, relative to the working directory.", "baselines/v4.2.msgpack").required().main(),
			entry("any_environment", drivers.Bool, "any environment", "`true` compares with a run from another kind of machine.").otherwise("false"),
		}),
		entry("strict_samples", drivers.Bool, "enough samples", "`true` makes a verdict on a percentile inconclusive if there are too few samples for it.").otherwise("false"),
		entry("preflight", drivers.Bool, "preflight", "`false` does not try to reach every endpoint before the load.").otherwise("true"),
	}
	return f
}

// steps makes the fields of the items of a flow. Items hold items: groups and branches have the same keys again.
func (f *format) steps(calls []Field) {
	inner, branch := &Field{}, &Field{}
	*inner = entry("", drivers.Group, "step", "A call, a pause, a group or a mix.")
	*branch = entry("", drivers.Group, "branch", "A step or a group, and its weight.")
	steps := entry("steps", SequenceKind, "group", "Steps in order, as a group: to repeat them, to name them, or to run them on a condition.")
	steps.Item = inner
	transaction := entry("transaction", SequenceKind, "transaction", "Steps of one database transaction, all with `sql` and the same database. `begin` and `commit` are steps of their own; when a step fails, the transaction is rolled back.")
	transaction.Item = inner
	mix := entry("mix", NamedKind, "mix", "One of several branches for each iteration, by their weights. Every cycle of iterations has exactly these shares, the same for every target.")
	mix.Item = branch
	rest := []Field{
		entry("timeout", drivers.Duration, "time-out", "How long the call may take. Left out: that of the phase.", "5s"),
		entry("on_failure", drivers.Choice, "on failure", "`end` ends the iteration when the step fails, `continue` goes on with the next one. The iteration has failed in both cases.").choices("end", "continue").otherwise("end"),
		entry("pause", SpanKind, "pause", "A pause instead of a call: a duration, or drawn from between two. Latency leaves it out.", "1s", "1s..3s"),
		steps, transaction, mix,
		entry("repeat", CountKind, "repeat", "How often the step or the group is run in an iteration.", "3").otherwise("1"),
		entry("when", ExpressionKind, "condition", "Runs the step only if this is true: of captured values, data, variables, `iteration` and `user`.", "iteration % 10 == 0", "token != nil"),
	}
	name := entry("name", NameKind, "name", "What the step is called in assertions and reports. Left out: its driver, if no other step without a name has the same.", "login")
	f.item = append(append([]Field{name}, calls...), rest...)
	f.branch = append([]Field{entry("weight", CountKind, "weight", "The share of the branch, in proportion to those of the others.", "7").otherwise("1")}, f.item[1:]...)
	inner.Keys, branch.Keys = f.item, f.branch
}

package main

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/verdict"
)

type importCommand struct {
	Curl curlCommand `cmd:"" help:"Make a plan of a curl command."`
}

type curlCommand struct {
	Output  string   `short:"o" placeholder:"FILE" help:"Write the plan to a file that does not exist yet, and not to the terminal."`
	Command []string `arg:"" passthrough:"" help:"The command, in quotes or behind --."`
}

func (c *curlCommand) run(p *program) (int, error) {
	words := c.Command
	if len(words) == 1 {
		var err error
		if words, err = shellWords(words[0]); err != nil {
			return verdict.ExitUsage, err
		}
	}
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	call, err := parseCurl(words)
	if err != nil {
		return verdict.ExitUsage, err
	}
	text := call.plan()
	for _, note := range call.notes {
		p.message("%s", note)
	}
	if c.Output == "" {
		_, err := p.stdout.Write(text)
		return verdict.ExitPassed, err
	}
	if err := writeNew(c.Output, text); err != nil {
		return exitOfWriting(err), err
	}
	fmt.Fprintf(p.stdout, "wrote %s\n", c.Output)
	return verdict.ExitPassed, nil
}

// shellWords splits a command line as a POSIX shell would, without expansions.
func shellWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inside := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'' || c == '$' && i+1 < len(line) && line[i+1] == '\'':
			ansi := c == '$'
			if ansi {
				i++
			}
			inside = true
			for i++; ; i++ {
				if i >= len(line) {
					return nil, fmt.Errorf("a quote in the command is not closed")
				}
				if line[i] == '\'' {
					break
				}
				if ansi && line[i] == '\\' && i+1 < len(line) {
					i++
					if r, ok := map[byte]byte{'n': '\n', 't': '\t', 'r': '\r'}[line[i]]; ok {
						word.WriteByte(r)
						continue
					}
				}
				word.WriteByte(line[i])
			}
		case c == '"':
			inside = true
			for i++; ; i++ {
				if i >= len(line) {
					return nil, fmt.Errorf("a quote in the command is not closed")
				}
				if line[i] == '"' {
					break
				}
				if line[i] == '\\' && i+1 < len(line) && strings.IndexByte("\"\\$`\n", line[i+1]) >= 0 {
					i++
					if line[i] == '\n' {
						continue
					}
				}
				word.WriteByte(line[i])
			}
		case c == '\\' && i+1 < len(line):
			i++
			if line[i] == '\r' && i+1 < len(line) && line[i+1] == '\n' {
				i++
			}
			if line[i] != '\n' {
				inside = true
				word.WriteByte(line[i])
			}
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if inside {
				words = append(words, word.String())
				word.Reset()
				inside = false
			}
		default:
			inside = true
			word.WriteByte(c)
		}
	}
	if inside {
		words = append(words, word.String())
	}
	return words, nil
}

// curlCall is a request as curl would send it.
type curlCall struct {
	method, url string
	headers     [][2]string
	body        string
	hasBody     bool
	json        bool
	user        string
	query       bool // data goes into the query
	insecure    bool
	version     string
	timeout     string
	redirects   bool
	compressed  bool
	notes       []string
}

// curlFlags are the options of curl that mean something to a plan, by their long names; those with true have a value.
var curlFlags = map[string]bool{
	"request": true, "header": true, "data": true, "data-raw": true, "data-binary": true, "data-ascii": true, "data-urlencode": true, "json": true,
	"user": true, "url": true, "user-agent": true, "referer": true, "cookie": true, "max-time": true, "connect-timeout": true,
	"get": false, "head": false, "insecure": false, "location": false, "compressed": false, "http1.1": false, "http2": false,
	"http2-prior-knowledge": false, "silent": false, "show-error": false, "include": false, "verbose": false, "fail": false, "globoff": false,
	"output": true, "write-out": true,
}

var curlShort = map[byte]string{
	'X': "request", 'H': "header", 'd': "data", 'u': "user", 'A': "user-agent", 'e': "referer", 'b': "cookie", 'm': "max-time",
	'G': "get", 'I': "head", 'k': "insecure", 'L': "location", 's': "silent", 'S': "show-error", 'i': "include", 'v': "verbose", 'f': "fail", 'g': "globoff",
	'o': "output", 'w': "write-out",
}

// parseCurl reads the words of a curl command.
func parseCurl(words []string) (*curlCall, error) {
	if len(words) > 0 && (words[0] == "curl" || strings.HasSuffix(words[0], "/curl")) {
		words = words[1:]
	}
	c := &curlCall{}
	for i := 0; i < len(words); i++ {
		w := words[i]
		if !strings.HasPrefix(w, "-") || w == "-" {
			if c.url != "" {
				return nil, fmt.Errorf("the command has two URLs, and a plan calls one in each step: %s and %s", c.url, w)
			}
			c.url = w
			continue
		}
		var flags [][2]string // and their values
		long, isLong := strings.CutPrefix(w, "--")
		value, has := "", false
		if isLong {
			long, value, has = strings.Cut(long, "=")
			if takes, known := curlFlags[long]; !known {
				return nil, fmt.Errorf("option --%s of curl is not understood; leave it out", long)
			} else if takes && !has {
				if i++; i == len(words) {
					return nil, fmt.Errorf("option --%s of curl needs a value", long)
				}
				value = words[i]
			}
			flags = append(flags, [2]string{long, value})
		} else {
			for j := 1; j < len(w); j++ {
				name, known := curlShort[w[j]]
				if !known {
					return nil, fmt.Errorf("option -%c of curl is not understood; leave it out", w[j])
				}
				if !curlFlags[name] {
					flags = append(flags, [2]string{name, ""})
					continue
				}
				if value = w[j+1:]; value == "" {
					if i++; i == len(words) {
						return nil, fmt.Errorf("option -%c of curl needs a value", w[j])
					}
					value = words[i]
				}
				flags = append(flags, [2]string{name, value})
				break
			}
		}
		for _, f := range flags {
			if err := c.option(f[0], f[1]); err != nil {
				return nil, err
			}
		}
	}
	if c.url == "" {
		return nil, fmt.Errorf("the command has no URL")
	}
	if !strings.Contains(c.url, "://") {
		c.url = "http://" + c.url
	}
	u, err := url.Parse(c.url)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%s is no URL", c.url)
	}
	if u.User != nil {
		c.user, u.User = u.User.String(), nil
		c.url = u.String()
	}
	if c.query && c.hasBody {
		sep := "?"
		if u.RawQuery != "" {
			sep = "&"
		}
		c.url += sep + c.body
		c.body, c.hasBody = "", false
	}
	if c.method == "" {
		c.method = "GET"
		if c.hasBody {
			c.method = "POST"
		}
	}
	return c, nil
}

func (c *curlCall) option(name, value string) error {
	data := func(text string) {
		if c.hasBody && !c.json {
			text = c.body + "&" + text
		} else if c.hasBody {
			text = c.body + text
		}
		c.body, c.hasBody = text, true
	}
	switch name {
	case "request":
		c.method = strings.ToUpper(value)
	case "head":
		c.method = "HEAD"
	case "get":
		c.query = true
	case "url":
		c.url = value
	case "header":
		key, text, ok := strings.Cut(value, ":")
		if !ok {
			return fmt.Errorf("the header %q has no colon", value)
		}
		c.headers = append(c.headers, [2]string{strings.TrimSpace(key), strings.TrimSpace(text)})
	case "user-agent":
		c.headers = append(c.headers, [2]string{"User-Agent", value})
	case "referer":
		c.headers = append(c.headers, [2]string{"Referer", value})
	case "cookie":
		c.headers = append(c.headers, [2]string{"Cookie", value})
	case "data", "data-raw", "data-binary", "data-ascii", "json":
		if strings.HasPrefix(value, "@") && name != "data-raw" {
			if value == "@-" {
				return fmt.Errorf("a body from the terminal is not understood; write it into a file, and @ and its name")
			}
			text, err := os.ReadFile(value[1:])
			if err != nil {
				return fmt.Errorf("the file %s can't be read", value[1:])
			}
			value = string(text)
			if name == "data" || name == "data-ascii" {
				value = strings.NewReplacer("\r", "", "\n", "").Replace(value)
			}
		}
		c.json = c.json || name == "json"
		data(value)
	case "data-urlencode":
		key, text, ok := strings.Cut(value, "=")
		switch {
		case ok && key != "":
			value = key + "=" + url.QueryEscape(text)
		case ok:
			value = url.QueryEscape(text)
		default:
			value = url.QueryEscape(value)
		}
		data(value)
	case "user":
		c.user = value
	case "insecure":
		c.insecure = true
	case "location":
		c.redirects = true
	case "compressed":
		c.compressed = true
	case "http1.1":
		c.version = "1.1"
	case "http2", "http2-prior-knowledge":
		c.version = "2"
	case "max-time":
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			return fmt.Errorf("--max-time %s is not a number of seconds", value)
		}
		c.timeout = value + "s"
	}
	return nil
}

// hidden matches the names of headers that hold what must not be written into a plan.
var hidden = regexp.MustCompile(`(?i)^(authorization|proxy-authorization|cookie|x-api-key|api-key|apikey|x-auth-token|.*-(token|secret|key|password))$`)

// hiddenValues match such values in queries and forms, and in JSON: what stands before, the name, the value, what is behind.
var hiddenValues = []*regexp.Regexp{
	regexp.MustCompile(`(?i)((?:^|[?&])(access_token|token|api_key|apikey|password|passwd|secret|client_secret|signature|sig)=)([^&]+)()`),
	regexp.MustCompile(`(?i)("(access_token|refresh_token|token|api_key|apikey|password|passwd|secret|client_secret)"\s*:\s*")([^"]+)(")`),
}

var placeholder = regexp.MustCompile(`\x00[A-Z_]+\x00`)

// scheme matches what stands in front of a credential.
var scheme = regexp.MustCompile(`^(Bearer|Basic|Token|ApiKey|Digest) `)

// plan writes a plan of the call.
func (c *curlCall) plan() []byte {
	var secrets []string
	secret := func(name string) string {
		base := name
		for i := 2; slices.Contains(secrets, name); i++ {
			name = fmt.Sprintf("%s_%d", base, i)
		}
		secrets = append(secrets, name)
		c.notes = append(c.notes, "the value of "+name+" is not in the plan; set "+name+" in the environment")
		return "${secret." + name + "}"
	}
	quoted := func(text string) string { return strings.ReplaceAll(text, "${", "$${") }
	var headers [][2]string
	for _, h := range c.headers {
		name, value := h[0], quoted(h[1])
		if hidden.MatchString(name) && value != "" {
			prefix := scheme.FindString(h[1])
			value = prefix + secret(strings.ToUpper(strings.Trim(regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(name, "_"), "_")))
		}
		headers = append(headers, [2]string{name, value})
	}
	if c.user != "" {
		headers = append(headers, [2]string{"Authorization", "Basic ${toBase64(secret.API_USER)}"})
		secrets = append(secrets, "API_USER")
		c.notes = append(c.notes, "the user and the password are not in the plan; set API_USER in the environment, as in name:password")
	}
	has := func(name string) bool {
		return slices.ContainsFunc(headers, func(h [2]string) bool { return strings.EqualFold(h[0], name) })
	}
	if c.hasBody && !has("Content-Type") {
		kind := "application/x-www-form-urlencoded"
		if c.json {
			kind = "application/json"
		}
		headers = append(headers, [2]string{"Content-Type", kind})
	}
	if c.json && !has("Accept") {
		headers = append(headers, [2]string{"Accept", "application/json"})
	}
	var b strings.Builder
	line := func(indent int, format string, args ...any) {
		fmt.Fprintf(&b, strings.Repeat("  ", indent)+format+"\n", args...)
	}
	u, _ := url.Parse(c.url)
	// What is sent in the address or in the body may be as secret as a header.
	without := func(text string) string {
		for _, p := range hiddenValues {
			text = p.ReplaceAllStringFunc(text, func(found string) string {
				m := p.FindStringSubmatch(found)
				return m[1] + "\x00" + strings.ToUpper(m[2]) + "\x00" + m[4]
			})
		}
		return placeholder.ReplaceAllStringFunc(quoted(text), func(mark string) string { return secret(strings.Trim(mark, "\x00")) })
	}
	path, body := without(u.RequestURI()), without(c.body)
	line(0, "# Made of a curl command. Phases and assertions are a beginning.")
	line(0, "targets:")
	line(1, "target:")
	line(2, "url: %s", yamlText(quoted(u.Scheme+"://"+u.Host)))
	if len(secrets) > 0 {
		b.WriteString("\n")
		line(0, "secrets:")
		for _, s := range secrets {
			line(1, "%s: {env: %s}", s, s)
		}
	}
	b.WriteString("\n")
	line(0, "scenarios:")
	line(1, "%s:", scenarioName(u.Path))
	line(2, "http:")
	if key := strings.ToLower(c.method); slices.Contains([]string{"get", "head", "post", "put", "patch", "delete"}, key) {
		line(3, "%s: %s", key, yamlText(path))
	} else {
		line(3, "url: %s", yamlText(c.method+" "+path))
	}
	if c.version != "" {
		line(3, "version: %s", c.version)
	}
	if c.redirects {
		line(3, "redirects: 50")
	}
	if c.compressed && !has("Accept-Encoding") {
		line(3, "compression: true")
	}
	if len(headers) > 0 {
		line(3, "headers:")
		for _, h := range headers {
			line(4, "%s: %s", yamlText(h[0]), yamlText(h[1]))
		}
	}
	if c.hasBody {
		line(3, "body: %s", yamlText(body))
	}
	if c.insecure && u.Scheme == "https" {
		line(3, "tls:")
		line(4, "insecure: true")
	}
	if c.timeout != "" {
		line(2, "timeout: %s", c.timeout)
	}
	line(2, "phases:")
	line(3, "- single")
	line(3, "- sequential: {count: 20}")
	line(2, "assert:")
	line(3, "- p95 < 1s")
	return []byte(b.String())
}

// yamlText writes text as a YAML scalar in double quotes, unless it is plainly text without them.
func yamlText(text string) string {
	if regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./?=&-]*$`).MatchString(text) && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off"}, strings.ToLower(text)) {
		return text
	}
	return strconv.Quote(text)
}

// scenarioName makes a name of the last part of a path.
func scenarioName(path string) string {
	name := path[strings.LastIndexByte(strings.TrimSuffix(path, "/"), '/')+1:]
	name = strings.Trim(regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(name, "_"), "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' || expression.Reserved(name) != "" || name == "target" || name == "single" || name == "sequential" {
		return "call"
	}
	return name
}

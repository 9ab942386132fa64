package drivers

// Kind is the form of a field's value in a plan.
type Kind uint8

const (
	Text       Kind = iota // a string, which may hold ${...}
	URL                    // a Text; one that begins with "/" is resolved against target.url
	Bool                   // true or false
	Int                    // a whole number, not negative
	Duration               // a number with a unit of time
	Size                   // a number with a unit of bytes
	Choice                 // one of Field.Choices
	File                   // the path of an input file, relative to the plan
	Texts                  // a mapping of names to Text
	Scalar                 // a string, number, truth value or null, which may hold ${...} and keeps its type
	List                   // a list of Scalar
	Args                   // a List, or a mapping of names to Scalar; with Fields, each value may also be a mapping with one of them
	Tree                   // any YAML, whose strings may hold ${...}
	Group                  // a mapping with keys of its own: Field.Fields
	TextOrBool             // a Text or a Bool
	FileList               // one File or a list of them
	Groups                 // a mapping of names to Groups; a text fills the Main field of one
)

// Field is one key of a plan: what the decoder, schema.json and the reference know of it.
type Field struct {
	Key      string
	Kind     Kind
	Title    string // a few words
	Doc      string // one or two sentences, in Markdown
	Default  string // as written in a plan; "" if there is none
	Examples []string
	Choices  []string
	Fields   []Field // of a Group, or of each of Groups or Args
	Main     bool    // filled by a step, or one of Groups, given as a string, as in `http: GET /`
	// Payload says that calls send it, or ask for something by it, so that two calls that are compared should have it alike.
	// Where calls go, who makes them and how is none.
	Payload bool
}

// Template is a value of a plan that may hold ${...}. It is safe for concurrent use.
type Template interface {
	// Constant returns the value when it is the same for every call: a string, int64, float64, bool or nil.
	Constant() (any, bool)
	// Eval returns the value for one call. A string that is one ${...} alone keeps the type of its expression.
	Eval(in *Input) (any, error)
	// AppendText appends the value as text, without allocating where it is constant.
	AppendText(dst []byte, in *Input) ([]byte, error)
}

// Value is what a plan says for a field. Which parts are set depends on the field's kind.
type Value struct {
	Kind     Kind
	Template Template // Text, URL, Scalar, and the leaves of a Tree
	Bool     bool
	Int      int64   // Int; Duration in nanoseconds; Size in bytes
	String   string  // Choice; File as an absolute path
	List     []Value // List, FileList, and sequences of a Tree
	Map      []Entry // Texts, Args given by name, Group, Groups, and mappings of a Tree, in the plan's order
	IsMap    bool    // tells an empty mapping from an empty list in Args and Tree
}

// Entry is one key of a mapping and its value.
type Entry struct {
	Key   string
	Value Value
}

// Op is one step for one target, as a plan says it, before it is prepared.
type Op struct {
	Values
	// Reads has the names of the answer that the step's expectations look at, so that a driver keeps nothing else.
	Reads map[string]bool
	// Roots are PEM certificates to be trusted besides the system's. It may be empty.
	Roots []byte
}

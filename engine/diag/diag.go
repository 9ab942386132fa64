// Package diag is what planrun has to say about a file: findings with a place, the line they are about, a caret and a
// suggestion.
package diag

// Place is a spot in a file.
type Place struct {
	File         string
	Line, Column int // from 1, in runes; 0 is unknown
}

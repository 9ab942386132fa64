package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// SQLSTATE codes; see https://www.postgresql.org/docs/current/errcodes-appendix.html.
const (
	protocolViolation   = "08P01"
	featureNotSupported = "0A000"
	numericOutOfRange   = "22003"
	invalidText         = "22P02"
	invalidBinary       = "22P03"
	integrityViolation  = "23000"
	notNullViolation    = "23502"
	foreignKeyViolation = "23503"
	uniqueViolation     = "23505"
	checkViolation      = "23514"
	readOnlyTransaction = "25006"
	failedTransaction   = "25P02"
	undefinedStatement  = "26000"
	undefinedCursor     = "34000"
	invalidSavepoint    = "3B001"
	serialization       = "40001"
	deadlockDetected    = "40P01"
	syntaxError         = "42601"
	ambiguousColumn     = "42702"
	undefinedColumn     = "42703"
	datatypeMismatch    = "42804"
	undefinedFunction   = "42883"
	undefinedTable      = "42P01"
	duplicateTable      = "42P07"
	queryCanceled       = "57014"
	adminShutdown       = "57P01"
	internalError       = "XX000"
)

// failure is an error as PostgreSQL reports it.
type failure struct{ code, message string }

func (f *failure) Error() string { return f.message }

func fail(code, format string, args ...any) error {
	return &failure{code, fmt.Sprintf(format, args...)}
}

// messages of SQLite that say more than its code, and what PostgreSQL says instead.
var messages = []struct {
	pattern *regexp.Regexp
	code    string
	message string
}{
	{regexp.MustCompile(`no such table: (?:main\.)?([^ ]+)`), undefinedTable, `relation "$1" does not exist`},
	{regexp.MustCompile(`no such column: ([^ ]+)`), undefinedColumn, `column "$1" does not exist`},
	{regexp.MustCompile(`table (\S+) has no column named (\S+)`), undefinedColumn, `column "$2" of relation "$1" does not exist`},
	{regexp.MustCompile(`ambiguous column name: (\S+)`), ambiguousColumn, `column reference "$1" is ambiguous`},
	{regexp.MustCompile(`no such function: (\S+)`), undefinedFunction, `function $1 does not exist`},
	{regexp.MustCompile(`wrong number of arguments to function (\S+)\(\)`), undefinedFunction, `function $1 does not exist with these arguments`},
	{regexp.MustCompile(`table (\S+) already exists`), duplicateTable, `relation "$1" already exists`},
	{regexp.MustCompile(`near "(.*)": syntax error`), syntaxError, `syntax error at or near "$1"`},
	{regexp.MustCompile(`incomplete input`), syntaxError, `syntax error at end of input`},
	{regexp.MustCompile(`unrecognized token: "(.*)"`), syntaxError, `syntax error at or near "$1"`},
	{regexp.MustCompile(`table \S+ has \d+ columns but \d+ values were supplied`), syntaxError, `INSERT has not as many expressions as target columns`},
	{regexp.MustCompile(`\d+ values for \d+ columns`), syntaxError, `INSERT has not as many expressions as target columns`},
	{regexp.MustCompile(`no such savepoint: (\S+)`), invalidSavepoint, `savepoint "$1" does not exist`},
	{regexp.MustCompile(`integer overflow`), numericOutOfRange, `bigint out of range`},
	{regexp.MustCompile(`missing argument with index (\d+)|missing named argument "(\d+)"`), protocolViolation, `no value was given for parameter $$$1$2`},
	{regexp.MustCompile(`UNIQUE constraint failed: (\S+)`), uniqueViolation, `duplicate key value violates unique constraint on $1`},
	{regexp.MustCompile(`NOT NULL constraint failed: (\S+)`), notNullViolation, `null value in column "$1" violates not-null constraint`},
	{regexp.MustCompile(`CHECK constraint failed: (\S+)`), checkViolation, `new row violates check constraint "$1"`},
	{regexp.MustCompile(`FOREIGN KEY constraint failed`), foreignKeyViolation, `foreign key constraint violated`},
	{regexp.MustCompile(`datatype mismatch`), datatypeMismatch, `datatype mismatch`},
}

// explain makes an error of SQLite one of PostgreSQL.
func explain(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if errors.Is(err, context.Canceled) {
		return &failure{queryCanceled, "canceling statement due to user request"}
	}
	text := err.Error()
	for _, m := range messages {
		if match := m.pattern.FindStringSubmatchIndex(text); match != nil {
			return &failure{m.code, string(m.pattern.ExpandString(nil, m.message, text, match))}
		}
	}
	code := internalError
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_BUSY:
			return &failure{deadlockDetected, "deadlock detected"}
		case sqlite3.SQLITE_INTERRUPT:
			return &failure{queryCanceled, "canceling statement due to user request"}
		case sqlite3.SQLITE_ABORT:
			code = serialization
		case sqlite3.SQLITE_CONSTRAINT:
			code = integrityViolation
		case sqlite3.SQLITE_ERROR:
			code = syntaxError
		}
	}
	return &failure{code, strings.TrimPrefix(text, "SQL logic error: ")}
}

func (f *failure) response() *pgproto3.ErrorResponse {
	return &pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: f.code, Message: f.message}
}

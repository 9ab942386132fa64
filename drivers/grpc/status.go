package grpc

import (
	"strconv"

	"google.golang.org/grpc/codes"
)

// statusNames are the names of the codes as the gRPC specification spells them (statuscodes.md).
var statusNames = [...]string{
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
	"RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE",
	"DATA_LOSS", "UNAUTHENTICATED",
}

// statusName names a code; one that the specification does not have is its number.
func statusName(c codes.Code) string {
	if int(c) < len(statusNames) {
		return statusNames[c]
	}
	return strconv.FormatUint(uint64(c), 10)
}

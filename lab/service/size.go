package service

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

var units = map[string]int64{
	"": 1, "B": 1,
	"kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
}

// parseSize reads a whole number of bytes with or without a unit: 1024, 8KiB, 64MiB, 1GB.
func parseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "BKMGik")
	n, err := strconv.ParseUint(digits, 10, 63)
	unit, ok := units[text[len(digits):]]
	if err != nil || !ok {
		return 0, fmt.Errorf("size %q is not a number of bytes like 8192, 8KiB or 64MiB", text)
	}
	if int64(n) > math.MaxInt64/unit {
		return 0, fmt.Errorf("size %q is too large", text)
	}
	return int64(n) * unit, nil
}

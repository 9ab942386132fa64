package data

import (
	"hash/fnv"
	"math/bits"
	"slices"
)

// Order is how iterations choose their rows.
type Order uint8

const (
	InTurn   Order = iota // one after the other, and again from the first
	Shuffled              // every row once in an order of its own, then all again in another
	Random                // each iteration draws one
	Once                  // one after the other, and none twice
)

var orderNames = []string{"in_turn", "shuffled", "random", "once"}

// Orders lists the names of orders.
func Orders() []string { return slices.Clone(orderNames) }

// ParseOrder is the inverse of Orders.
func ParseOrder(name string) (Order, bool) {
	i := slices.Index(orderNames, name)
	return Order(max(i, 0)), i >= 0
}

// Choice picks the row of an iteration from its number and the seeds alone, so every target gets the same rows.
type Choice struct {
	Order Order
	Rows  int64
	salt  uint64
}

// NewChoice makes a choice among rows, at least 1. Sets of different names are shuffled differently.
func NewChoice(order Order, rows int64, name string) Choice {
	h := fnv.New64a()
	h.Write([]byte(name))
	return Choice{order, rows, h.Sum64()}
}

// Row returns the row of an iteration. seed is that of the iteration, round that of its round. With Once there is no row
// for iterations from Rows on.
func (c Choice) Row(iteration int64, seed, round uint64) (row int64, ok bool) {
	switch c.Order {
	case Shuffled:
		cycle, k := iteration/c.Rows, iteration%c.Rows
		return c.permute(k, mix(round^c.salt)+uint64(cycle)), true
	case Random:
		hi, _ := bits.Mul64(mix(seed^c.salt), uint64(c.Rows))
		return int64(hi), true
	case Once:
		return iteration, iteration < c.Rows
	}
	return iteration % c.Rows, true
}

// permute is where k comes to lie in a shuffle of all rows: a Feistel network of four rounds over the next even number of
// bits, applied again until the result is a row (cycle walking; Black and Rogaway, Ciphers with Arbitrary Finite Domains,
// 2002). It needs no table, however many rows there are.
func (c Choice) permute(k int64, key uint64) int64 {
	half := (bits.Len64(uint64(c.Rows-1)) + 1) / 2
	if half == 0 {
		return 0
	}
	mask := uint64(1)<<half - 1
	x := uint64(k)
	for {
		left, right := x>>half, x&mask
		for round := range uint64(4) {
			left, right = right, left^mix(right+key+round<<56)&mask
		}
		if x = left<<half | right; x < uint64(c.Rows) {
			return int64(x)
		}
	}
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood 2014).
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// A Go program whose call chain is known. Burns CPU until it is killed.
package main

import (
	"fmt"
	"strings"
)

var sink uint64

//go:noinline
func goLeaf(rounds int) uint64 {
	value := sink
	for round := 0; round < rounds; round++ {
		value = value*6364136223846793005 + 1442695040888963407
	}
	return value
}

//go:noinline
func goMiddle(parts []int) {
	for _, part := range parts {
		sink += goLeaf(part) + uint64(len(strings.Repeat("ab", part%50)))
	}
}

//go:noinline
func goOuter() {
	parts := make([]int, 100)
	for index := range parts {
		parts[index] = 10000 + index
	}
	goMiddle(parts)
}

func main() {
	fmt.Println("ready")
	for {
		goOuter()
	}
}

// Go: goroutines on small stacks that grow, channels, maps, panics that are recovered, the garbage collector.
package main

import (
	"fmt"
	"runtime"
	"sort"
	"strings"
	"sync"
)

type shape interface{ area() float64 }
type square struct{ side float64 }

func (s square) area() float64 { return s.side * s.side }

func fibonacci(n int) int {
	if n < 2 {
		return n
	}
	return fibonacci(n-1) + fibonacci(n-2)
}

func deep(n int) int {
	var room [200]byte
	room[n%200] = 1
	if n == 0 {
		return 0
	}
	return deep(n-1) + int(room[n%200])
}

func main() {
	var group sync.WaitGroup
	results := make(chan int, 10)
	for i := 15; i < 20; i++ {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			results <- fibonacci(i) + deep(5000)
		}(i)
	}
	group.Wait()
	close(results)
	all := []int{}
	for result := range results {
		all = append(all, result)
	}
	sort.Ints(all)
	words := map[string]int{}
	for _, word := range strings.Fields("a b a c b a") {
		words[word]++
	}
	fmt.Println(all, words, shape(square{2.5}).area())
	func() {
		defer func() { fmt.Println("recovered", recover()) }()
		var none *square
		_ = none.side
	}()
	runtime.GC()
	fmt.Println(deep(100000))
}

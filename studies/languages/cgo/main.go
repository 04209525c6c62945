// Go by its own compiler, with C in it: goroutines, growing stacks, garbage, panics, names of callers, calls both ways.
package main

/*
#include <stdint.h>
#include <stdlib.h>

extern int goCompare(void *, void *);
static int compare(const void *a, const void *b) { return goCompare((void *)a, (void *)b); }

static uint32_t step(uint32_t sum, uint32_t with) {
    switch (with & 7) {
    case 0: return sum * 3;
    case 1: return sum ^ with;
    case 2: return sum + with;
    case 3: return sum - with;
    case 4: return sum * with + 1;
    case 5: return ~sum;
    default: return sum >> 1 | sum << 31;
    }
}
static void sort(int32_t *numbers, size_t count) { qsort(numbers, count, sizeof *numbers, compare); }
*/
import "C"

import (
	"fmt"
	"runtime"
	"sort"
	"strings"
	"unsafe"
)

//export goCompare
func goCompare(a, b unsafe.Pointer) C.int {
	return C.int(*(*int32)(a) - *(*int32)(b))
}

// deep grows the stack, which is copied then: all frames on it are found by the table.
func deep(n int) int {
	var room [64]int
	room[n%64] = n
	if n == 0 {
		var callers [8]uintptr
		count := runtime.Callers(1, callers[:])
		frame, _ := runtime.CallersFrames(callers[:count]).Next()
		return len(frame.Function)
	}
	return deep(n-1) + room[n%64]
}

func divide(a, b int) (result int) {
	defer func() {
		if problem := recover(); problem != nil {
			fmt.Println("caught:", problem)
			result = -1
		}
	}()
	return a / b
}

func main() {
	counts := map[string]int{}
	for i := 0; i < 20000; i++ {
		counts[fmt.Sprint("k", i%777)] += i
	}
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	sort.Strings(names)
	sums := make(chan int)
	for i := 0; i < 8; i++ {
		go func(i int) {
			sum := deep(3000)
			for j := 0; j < 50000; j++ {
				sum += j ^ i
				if j%1000 == 0 {
					_ = make([]byte, 4096)
				}
			}
			sums <- sum
		}(i)
	}
	total := 0
	for i := 0; i < 8; i++ {
		total += <-sums
	}
	runtime.GC()
	sum := C.uint32_t(7)
	numbers := make([]int32, 500)
	for i := range numbers {
		sum = C.step(sum, C.uint32_t(i))
		numbers[i] = int32(sum % 1000)
	}
	C.sort((*C.int32_t)(&numbers[0]), C.size_t(len(numbers)))
	fmt.Println(len(names), strings.Join(names[:3], ","), total, divide(1, len(names)-777), sum, numbers[:5])
}

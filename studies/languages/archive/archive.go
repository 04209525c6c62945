// The Go part of a C program.
package main

import "C"

import (
	"fmt"
	"runtime"
)

//export describe
func describe(number C.int) *C.char {
	defer func() {
		if problem := recover(); problem != nil {
			fmt.Println("caught:", problem)
		}
	}()
	done := make(chan string)
	go func() { done <- fmt.Sprintf("<%d:%x>", number, make([]byte, number%5)) }()
	text := <-done
	if number == 7 {
		runtime.GC()
		panic("seven")
	}
	return C.CString(text)
}

func main() {}

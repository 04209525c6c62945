# Nim: methods, exceptions, tables, closure iterators, the garbage collector.
import std/[tables, strutils, sequtils, algorithm]
type Animal = ref object of RootObj
method speak(a: Animal, n: int): string {.base.} = "?" & $n
type Dog = ref object of Animal
method speak(a: Dog, n: int): string = (if n > 3: raise newException(ValueError, "too loud"); "woof".repeat(n))
iterator odd(n: int): int {.closure.} =
  for i in 0..n:
    if i mod 2 == 1: yield i
var t = initTable[string, int]()
for i in 0..5000: t.mgetOrPut("k" & $(i mod 37), 0) += i
for a in @[Animal(), Dog()]:
  for n in [2, 5]:
    try: echo a.speak(n)
    except ValueError: echo "caught ", getCurrentExceptionMsg()
echo toSeq(t.keys).sorted()[0..4], t["k3"]
var s = 0
for i in odd(1000): s += i
echo s

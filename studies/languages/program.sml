(* Standard ML: functions, exceptions, the garbage collector. *)
fun fib n = if n < 2 then n else fib (n-1) + fib (n-2);
exception Large of int;
fun f x = if x > 3 then raise Large x else x * 2;
fun main () = (print (Int.toString (fib 22) ^ "\n"); app (fn x => print (Int.toString (f x) ^ "\n") handle Large n => print ("caught " ^ Int.toString n ^ "\n")) [1,2,5]; PolyML.fullGC (); print (Int.toString (length (List.tabulate (100000, fn i => [i]))) ^ "\n"));

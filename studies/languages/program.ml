(* OCaml: the collector walks the stack by a table of return addresses; exceptions, closures, functors. *)
module Map = Map.Make (String)

type tree = Leaf | Node of tree * int * tree

let rec insert x = function
  | Leaf -> Node (Leaf, x, Leaf)
  | Node (left, value, right) as node ->
      if x < value then Node (insert x left, value, right)
      else if x > value then Node (left, value, insert x right)
      else node

let rec depth = function Leaf -> 0 | Node (left, _, right) -> 1 + max (depth left) (depth right)
let rec fibonacci n = if n < 2 then n else fibonacci (n - 1) + fibonacci (n - 2)

let () =
  let numbers = List.init 500 (fun i -> i * 7919 mod 1009) in
  let map = List.fold_left (fun map i -> Map.add (string_of_int i) i map) Map.empty numbers in
  Printf.printf "%d %d\n" (fibonacci 22) (Map.fold (fun _ value sum -> sum + value) map 0);
  let tree = ref Leaf in
  for i = 1 to 20000 do tree := insert (i * 7919 mod 100003) !tree done;
  Printf.printf "%d\n" (depth !tree);
  (try ignore (List.hd []) with Failure what -> print_endline what);
  (try ignore [| 1 |].(Sys.opaque_identity 3) with Invalid_argument what -> print_endline what);
  Gc.compact ();
  let table = Hashtbl.create 10 in
  for i = 1 to 30000 do Hashtbl.replace table (i mod 1000) (string_of_int i) done;
  Printf.printf "%d %s %.3f\n" (Hashtbl.length table) (Hashtbl.find table 7) (sin 1.0)

[.[] | select(.n % 3 != 0) | {name, key: (.tags | map(ascii_upcase) | join("-")), v: (.n * 2 + (.tags | length)), t: (.name | test("^[a-e]"))}]
| group_by(.key[0:3]) | map({k: .[0].key[0:3], n: length, sum: (map(.v) | add), max: (max_by(.v).v), names: ([.[].name] | unique | length), any: any(.[]; .t)}) | sort_by(-.sum)

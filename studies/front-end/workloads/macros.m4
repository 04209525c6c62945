divert(`-1')
# Macros that call themselves, lists, numbers, patterns and diversions: the same answers everywhere. N says how often.
define(`each', `ifelse(`$#', `2', `', `$2(`$3')$0(`$1'+, `$2'shifted(shift(shift($@))))')')
define(`shifted', `ifelse(`$#', `1', `', `,shift($@)')')
define(`fibonacci', `ifelse(eval(`$1 < 2'), `1', `$1', `eval(fibonacci(decr(`$1')) + fibonacci(eval(`$1 - 2')))')')
define(`towers', `ifelse(`$1', `0', `', `$0(decr(`$1'), `$2', `$4', `$3')`$2'`$3'$0(decr(`$1'), `$4', `$3', `$2')')')
define(`remember', `define(`known_$1', eval(ifdef(`known_$1', known_$1, 0) + len(`$1')))')
define(`word', `translit(substr(`amberbasketcopperdolphin', eval(`$1 * 7 % 20'), 4), `a-m', `n-z')')
define(`line', `patsubst(format(`%05d:%-10s|', `$1', word(`$1')), `[aeiou]+', `<\&>')')
define(`rounds', `ifelse(`$1', `0', `', `remember(word(`$1'))line(`$1')ifelse(regexp(line(`$1'), `\([n-z]\)\([0-9]\)\1'), -1, `', `*')
$0(decr(`$1'))')')
define(`plus', ``$1'+')
divert(`0')dnl
rounds(N)dnl
divert(`2')dnl
len(towers(11, a, b, c)) fibonacci(14)
divert(`0')dnl
each(, `plus', one, two, `three, four', five)
known_ntob esyscmd(`true')ifdef(`known_oref', known_oref)

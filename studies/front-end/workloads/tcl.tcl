# Lists, dictionaries, strings, expressions, regular expressions, procedures and errors: the same answers everywhere.
set state 12345
proc below {limit} {
    global state
    set state [expr {($state * 1103515245 + 12345) % 2147483648}]
    expr {$state / 65536 % $limit}
}
proc fold {f start values} {
    foreach value $values { set start [apply $f $start $value] }
    return $start
}
set sum 0
for {set round 0} {$round < 300} {incr round} {
    set words {}
    for {set i 0} {$i < 40} {incr i} { lappend words "w[below 200][string index abcdefgh [expr {$i % 8}]]" }
    set seen [dict create]
    foreach word [lsort -unique $words] { dict incr seen [string length $word] }
    set text [join [lreverse [lsort -dictionary $words]] ", "]
    incr sum [regsub -all {w(\d)} $text {<\1>} text]
    foreach {all digits} [regexp -all -inline {>(\d+)[a-d]} $text] { scan $digits %d number; incr sum $number }
    set sum [fold {{a b} {expr {($a * 3 + $b) % 1000003}}} $sum [dict values $seen]]
    incr sum [string length [format "%08.3f|%-10s|%x" [expr {sqrt($round) + sin($sum)}] [string toupper [lindex $words 3]] $sum]]
    if {[catch {expr {1 / ($round % 5 ? 0 : 1)}} message]} { incr sum [string length $message] }
    switch -glob -- [lindex $words 5] { w1* { incr sum 1 } *a { incr sum 2 } default { incr sum 3 } }
    array set table [list key$round $sum]
    binary scan [binary format ia4 $round $text] ia4 number rest
    incr sum [expr {$number + ([string map {a bb} $rest] ne "")}]
}
puts "$sum [array size table] [clock format 1577966400 -gmt 1]"

# Fields, patterns, arrays, substitution, formats, functions and sorting over the lines of make_text: the same answers everywhere.
function join(parts, count,    i, text) { for (i = 1; i <= count; i++) text = text parts[i] "-"; return text }
BEGIN { FS = "[ ,]+" }
/[aeiou]{2}/ { vowels++ }
$2 ~ /^1/ { ones += $2 }
{
    for (i = 1; i <= NF; i++) seen[$i]++
    count = split($0, parts, /[0-9]+/)
    length_of[NR % 100] += length(join(parts, count))
    gsub(/[0-9]/, "#")
    text = toupper(substr($0, 3, 20)) sprintf("%05d|%-8s|%.3f|%x", NR, $1, sqrt(NR) / 7, NR)
    if (match(text, /([A-Z]+) /, found)) sum += length(found[1])
    last = gensub(/(.)(.)/, "\\2\\1", "g", text)
}
END {
    count = asorti(seen, names)
    print NR, vowels, ones, count, names[1], names[count], sum, last, length_of[7], strftime("%Y", 86400 * 365, 1)
}

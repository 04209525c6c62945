{
    n = split($0, words, /[ ,]+/)
    for (i = 1; i <= n; i++) {
        count[words[i]]++
        if (words[i] ~ /^[a-f].*[0-9]$/) matches++
        bytes += length(words[i]) * (i % 3)
    }
    text = toupper(substr($0, 5, 20))
    gsub(/[AEIOU]+/, "<&>", text)
    longer += length(text)
    line = sprintf("%05d:%-10s|%.3f", NR, $2, bytes / NR)
    lines[substr(line, 1, 4)] = line
    if (index($0, "harbor")) last = NR
}
function calls(n) { return n < 2 ? n : calls(n - 1) + calls(n - 2) }
END {
    for (word in count) if (count[word] > most) most = count[word]
    print NR, matches, bytes, longer, last, most, length(lines), calls(21)
}

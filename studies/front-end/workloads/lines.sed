# Matching, substituting, the hold space, branches and transliteration.
s/\([a-z]\{3,\}\)\([0-9]\+\),/<\2:\1>/g
t held
s/ \+/ /g
:held
/falcon/{
    s/fal\(con[0-9]*\)/[\1]/2
    y/abcdefgh/hgfedcba/
}
/[0-9]\{3\}.*dolphin/!{
    s/[a-z]*[0-9]/&&/3
    x
    G
    s/\n.*//
    x
}
$!N
s/\n\(.\)/ \1|/
/amber$/D
s/^\(.\)\(.\)/\2\1/
P
$!d
x
s/\n/+/g

# Sourced after programs.sh by those who ask what layouts of one program do, all by one profile.
#
#   LAYING         the example `layouts`                   (default: target/release/examples/layouts of this repository)
LAYING=${LAYING:-$repository/target/release/examples/layouts}

# laid_out PROGRAM LAYOUT: prints the path of the program in that layout.
laid_out() {
    local plain=$STUDY_WORK/$1/plain/$base profile=$STUDY_WORK/$1/$TRAINING.fdata file=$STUDY_WORK/$1/layouts/$2/$base
    local bolt=(llvm-bolt-22 "$plain" -o "$file" -data "$profile" -reorder-blocks=ext-tsp -reorder-functions=cdsort -split-functions
        -split-all-cold)
    mkdir -p "$(dirname "$file")"
    if [ ! "$file" -nt "$plain" ]; then
        rm -f "$file"
        case $2 in
        plain) cp "$plain" "$file" ;;
        bolt-profile2 | bolt-cdsplit) "${bolt[@]}" "-split-strategy=${2#bolt-}" ;;
        bolt-extras)
            bolt+=(-split-strategy=profile2 -icf=1 -peepholes=all -inline-small-functions -jump-tables=move -align-blocks
                -tail-duplication=aggressive)
            # Of some programs BOLT asks for -z now.
            "${bolt[@]}" -plt=all || "${bolt[@]}"
            ;;
        *) "$LAYING" "$plain" "$profile" "$STUDY_WORK/$1/layouts" "$2" ;;
        esac > "$STUDY_WORK/$1/layout.log" 2>&1 || die "see $STUDY_WORK/$1/layout.log"
    fi
    echo "$file"
}

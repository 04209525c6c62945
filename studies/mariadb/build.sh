#!/usr/bin/env bash
# Builds MariaDB's server from Debian's source package, by gcc with -O2, with InnoDB, Aria, MyISAM, partitions and the performance
# schema in it, and the relocations kept.
#
# Gives $STUDY_WORK/plain/mariadbd, and $STUDY_WORK/build, the tree that the tests run in.
. "$(dirname "$0")/environment.sh"

left_out=(ROCKSDB MROONGA TOKUDB SPIDER CONNECT OQGRAPH SPHINX S3 COLUMNSTORE ARCHIVE FEDERATED FEDERATEDX FEEDBACK HASHICORP_KEY_MANAGEMENT
    CRACKLIB_PASSWORD_CHECK AUTH_GSSAPI AUTH_PAM)
# The server, and what its tests use.
wanted=(mariadbd mariadb mariadb-test mariadb-admin mariadb-dump mariadb-check mariadb-binlog mariadb-slap mariadb-upgrade mariadb-import
    mariadb-show mariadb-plugin mariadb-tzinfo-to-sql mariadb-conv mariadb-client-test my_print_defaults my_safe_process perror replace
    resolveip comp_sql innochecksum myisamlog myisamchk myisampack myisam_ftdump aria_chk aria_pack aria_read_log aria_dump_log aria_ftdump)

configure() {
    local plugins=("${left_out[@]/#/-DPLUGIN_}")
    cmake -G Ninja -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_FLAGS_RELEASE=-O2 -DNDEBUG" "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG" \
        -DCMAKE_EXE_LINKER_FLAGS=-Wl,--emit-relocs "${plugins[@]/%/=NO}" -DWITH_WSREP=OFF -DWITH_MARIABACKUP=OFF \
        -DWITH_UNIT_TESTS=OFF -DCONC_WITH_UNITTEST=OFF -DWITH_EMBEDDED_SERVER=OFF -DWITH_SYSTEMD=no -DWITH_SSL=system -DWITH_ZLIB=system \
        -DWITH_PCRE=system -DWITH_LIBFMT=system
}

compile() {
    { configure && nice -n "${NICE:-0}" ninja -C "$build" "${wanted[@]}"; } > "$logs/build.log" 2>&1 || die "see $logs/build.log"
    mkdir -p "$plain_programs"
    cp "$build/sql/mariadbd" "$plain_programs/mariadbd"
}

install_packages build-essential dpkg-dev pkg-config cmake ninja-build bison perl libncurses-dev libssl-dev zlib1g-dev libpcre2-dev libfmt-dev \
    libaio-dev libevent-dev libcurl4-openssl-dev
build_once "$plain_programs/mariadbd" mariadb "$source" "half an hour" compile

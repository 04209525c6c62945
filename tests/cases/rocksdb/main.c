/* RocksDB: a large C++ library with threads, exceptions, virtual functions and pointers to member functions. A database is
   written, compacted, read back, and asked for its properties, which it finds by pointers to member functions. */
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 20000, PRIME = 100003 };

static void check(char *error) {
    if (error) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
}

static size_t key_of(char *key, unsigned number) { return sprintf(key, "%08u", number); }

int main(void) {
    char *error = NULL, key[32], value[160], folder[] = "/tmp/afterlink-rocksdb-XXXXXX";
    if (!mkdtemp(folder))
        return 2;
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_write_buffer_size(options, 1 << 18);
    rocksdb_options_set_compression(options, rocksdb_lz4_compression);
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom(10));
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_t *db = rocksdb_open(options, folder, &error);
    check(error);
    rocksdb_writeoptions_t *writing = rocksdb_writeoptions_create();
    for (unsigned i = 0; i < COUNT; i++) {
        size_t size = key_of(key, i * 7919 % PRIME);
        rocksdb_put(db, writing, key, size, value, sprintf(value, "%u %080u", i, i * i), &error);
        if (i % 7 == 0)
            rocksdb_delete(db, writing, key, size, &error);
        check(error);
    }
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    rocksdb_readoptions_t *reading = rocksdb_readoptions_create();
    rocksdb_iterator_t *each = rocksdb_create_iterator(db, reading);
    unsigned count = 0, sum = 0, found = 0;
    size_t size;
    for (rocksdb_iter_seek_to_first(each); rocksdb_iter_valid(each); rocksdb_iter_next(each), count++) {
        const char *text = rocksdb_iter_value(each, &size);
        for (size_t i = 0; i < size; i++)
            sum = sum * 31 + (unsigned char)text[i];
    }
    rocksdb_iter_destroy(each);
    for (unsigned i = 0; i < 5000; i++) {
        char *text = rocksdb_get(db, reading, key, key_of(key, i), &size, &error);
        found += text != NULL;
        rocksdb_free(text);
    }
    printf("%u %u %u\n", count, sum, found);
    static const char *const properties[] = {"rocksdb.stats", "rocksdb.levelstats", "rocksdb.cfstats"};
    for (unsigned i = 0; i < 3; i++) {
        char *text = rocksdb_property_value(db, properties[i]);
        printf("%s %s\n", properties[i], text && strstr(text, "Level") ? "tells of levels" : "tells nothing");
        rocksdb_free(text);
    }
    rocksdb_close(db);
    rocksdb_destroy_db(options, folder, &error);
    check(error);
    db = rocksdb_open_for_read_only(options, "/nonexistent/database", 0, &error);
    printf("%s\n", error ? "no database" : "opened");
    return 0;
}

#!/usr/bin/env python3
"""Writes a Makefile for DuckDB's sources as the crate libduckdb-sys packs them: makefile.py duckdb/manifest.json > Makefile"""

import json
import sys

EXTENSION = "core_functions"

manifest = json.load(open(sys.argv[1]))
parts = [manifest["base"], manifest["extensions"][EXTENSION]]
files = [file for part in parts for file in part["cpp_files"]]
folders = dict.fromkeys(folder for part in parts for folder in part["include_dirs"])
flags = [f"-Iduckdb/{folder}" for folder in folders]
flags += ["-Iduckdb", f"-DDUCKDB_EXTENSION_{EXTENSION.upper()}_LINKED=1", "-DNDEBUG"]
objects = [f"objects/{i}.o" for i in range(len(files))]
print("CXXFLAGS = -std=c++17 -O2 -g -w", *flags)
print("plain: queries.cpp", *objects)
print("\tg++ $(CXXFLAGS) -Wl,--emit-relocs -o $@ $^ -lpthread -ldl")
for object_file, source in zip(objects, files):
    print(f"{object_file}: {source}\n\tg++ $(CXXFLAGS) -c -o $@.new $< && mv $@.new $@")
